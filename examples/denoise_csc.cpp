// Denoises an image by convolutional sparse coding with filters that learn_dictionary has written.
//
// usage: denoise_csc [filters.safetensors] [image.fits] [figure.png] [lambda]
// Noise of a tenth of the peak is added to the image; the figure shows the image, with noise, and denoised.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/randn_like.h>
#include <torch/utils.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>
#include <mpol_cpp/plot/figure_writer.h>

namespace {

using mpol::Tensor;

double snr(const Tensor& picture, const Tensor& truth) {
  return 10 * ((truth.square().sum() / (picture - truth).square().sum()).log10()).item<double>();
}

/// The smooth part: min |x - s|^2/2 + 5 |D x|^2/2. It has little noise, and few small filters would make it badly.
Tensor smooth_part(const Tensor& image) {
  const auto rows = image.size(-2), columns = image.size(-1);
  const auto slopes = mpol::squared_differences(rows, columns, image.options());
  return at::fft_irfft2(at::fft_rfft2(image) / (1 + 5 * slopes), at::IntArrayRef{rows, columns});
}

mpol::plot::ImagePanel panel(const std::string& title, const Tensor& picture, double width) {
  mpol::plot::ImagePanel panel;
  panel.title = title;
  panel.values = picture[0];
  panel.extent = {width / 2, -width / 2, -width / 2, width / 2};
  panel.upper = 1;
  return panel;
}

void run(const std::string& dictionary, const std::string& input, const std::string& output, double lambda) {
  torch::manual_seed(2);
  const auto filters = mpol::read_safetensors(dictionary).tensors.at("filters");
  const auto file = mpol::io::read_fits(input);
  const auto truth = (file.cube / file.cube.max()).to(torch::kFloat32);  // (1, npix, npix)
  const auto noisy = truth + 0.1 * at::randn_like(truth);

  const auto smooth = smooth_part(noisy);
  mpol::ConvolutionalCodingOptions options(lambda);
  options.most_iterations = 200;
  options.callback = mpol::iteration_table([](std::string_view line) { fmt::print("{}\n", line); });
  mpol::ConvolutionalCoder coder(filters, noisy - smooth, options);
  const auto report = coder.solve();
  const auto restored = smooth + coder.reconstruction();
  const auto used = (coder.coefficients() != 0).sum().item<std::int64_t>();
  fmt::print("{} iterations, {} of {} coefficients are used\n", report.iterations, used, coder.coefficients().numel());
  fmt::print("noise: {:.2f} dB before, {:.2f} dB after\n", snr(noisy, truth), snr(restored, truth));

  const double width = file.cell_size * static_cast<double>(truth.size(-1));
  mpol::plot::Page page;
  page.columns = 3;
  page.panels = {panel("image", truth, width), panel("with noise", noisy, width), panel("denoised", restored, width)};
  if (mpol::plot::write_figure(output, page)) fmt::print("figure written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "filters.safetensors", argc > 2 ? argv[2] : "data/simulated_disc_truth.fits",
        argc > 3 ? argv[3] : "denoise_csc.png", argc > 4 ? std::stod(argv[4]) : 0.3);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "denoise_csc: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
