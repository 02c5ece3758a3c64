// Denoises an image by total variation, one with outliers by total variation with absolute residuals, and by a denoiser of one's
// own (plug and play).
//
// usage: denoise_tv [image.fits] [figure.png] [lambda]
// Noise of a tenth of the peak is added to the image; the figure shows the image, with noise, and restored.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/fft_rfftfreq.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/utils.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>
#include <mpol_cpp/plot/figure_writer.h>

namespace {

using mpol::Tensor;

/// How far a picture is from the true one, dB.
double snr(const Tensor& picture, const Tensor& truth) {
  return 10 * ((truth.square().sum() / (picture - truth).square().sum()).log10()).item<double>();
}

mpol::plot::ImagePanel panel(const std::string& title, const Tensor& picture, double width) {
  mpol::plot::ImagePanel panel;
  panel.title = title;
  panel.values = picture[0];
  panel.extent = {width / 2, -width / 2, -width / 2, width / 2};
  panel.upper = 1;
  return panel;
}

/// A denoiser: it takes the more from a frequency the higher that is, and the larger the variance is of the noise.
Tensor smoothed(const Tensor& image, const Tensor& variance) {
  const auto rows = at::fft_fftfreq(image.size(-2), 1.0, image.options()).unsqueeze(-1),
             columns = at::fft_rfftfreq(image.size(-1), 1.0, image.options());
  const auto spectrum = at::fft_rfft2(image) / (1 + 400 * variance * (rows.square() + columns.square()));
  return at::fft_irfft2(spectrum, at::IntArrayRef{image.size(-2), image.size(-1)});
}

/// |x - noisy|^2 / 2 with that denoiser in the place of a prior's proximal map.
Tensor by_own_denoiser(const Tensor& noisy) {
  const auto data = std::make_shared<mpol::ShiftedProximal>(std::make_shared<mpol::SquaredL2Norm>(), noisy);
  mpol::Admm solver(std::make_shared<mpol::ProximalModel>(data), std::make_shared<mpol::UserProximal>(smoothed),
                    at::zeros_like(noisy));
  solver.solve();
  return solver.solution();
}

void run(const std::string& input, const std::string& output, double lambda) {
  torch::manual_seed(1);
  const auto file = mpol::io::read_fits(input);
  const auto truth = (file.cube / file.cube.max()).to(torch::kFloat32);  // (1, npix, npix)
  const auto noisy = truth + 0.1 * at::randn_like(truth);

  const mpol::TvRestorationOptions options(lambda);
  const auto denoiser = mpol::tv_denoiser(noisy, options);
  const auto report = denoiser->solve();
  const auto restored = denoiser->solution();
  fmt::print("{} iterations, objective {:.6g}\n", report.iterations, report.objective[0]);
  fmt::print("noise: {:.2f} dB before, {:.2f} dB after\n", snr(noisy, truth), snr(restored, truth));

  fmt::print("denoiser of one's own: {:.2f} dB\n", snr(by_own_denoiser(noisy), truth));

  // One pixel in ten is black or white: squares would follow them, absolute values need not.
  const auto dice = at::rand_like(truth);
  const auto spiked = at::where(dice < 0.05, 0 * truth, at::where(dice > 0.95, 0 * truth + 1, truth));
  mpol::TvRestorationOptions absolute(0.8);
  absolute.fidelity = mpol::TvRestorationOptions::Fidelity::absolute;
  const auto remover = mpol::tv_denoiser(spiked, absolute);
  remover->solve();
  const auto cleared = remover->solution();
  fmt::print("outliers: {:.2f} dB before, {:.2f} dB after\n", snr(spiked, truth), snr(cleared, truth));

  const double width = file.cell_size * static_cast<double>(truth.size(-1));
  mpol::plot::Page page;
  page.columns = 3;
  page.panels = {panel("image", truth, width), panel("with noise", noisy, width),     panel("denoised", restored, width),
                 panel("image", truth, width), panel("with outliers", spiked, width), panel("cleared", cleared, width)};
  if (mpol::plot::write_figure(output, page)) fmt::print("figure written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/simulated_disc_truth.fits", argc > 2 ? argv[2] : "denoise_tv.png",
        argc > 3 ? std::stod(argv[3]) : 0.1);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "denoise_tv: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
