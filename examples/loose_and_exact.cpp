// Two ways to the same chi^2 of loose visibilities: by nonuniform transforms of each of them, and by their normal operator, at a
// cost that does not depend on their number; and noise with outliers, for which only the first will do.
//
// usage: loose_and_exact [visibilities.npz] [image.fits]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include <ATen/ops/empty_like.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

/// chi^2 of an image, its gradient, and the milliseconds that one evaluation takes.
struct Evaluation {
  double chi_squared = 0, milliseconds = 0;
  torch::Tensor gradient;
};

Evaluation evaluate(mpol::Likelihood& likelihood, const torch::Tensor& sky) {
  Evaluation result;
  result.gradient = at::empty_like(sky);
  constexpr int times = 20;
  mpol::DeviceTimer timer(sky.device());
  for (int i = 0; i < times; ++i) {
    result.chi_squared = likelihood.value_and_gradient(sky, result.gradient, mpol::Accumulate::overwrite).item<double>();
  }
  result.milliseconds = 1e3 * timer.seconds() / times;
  fmt::print("{:6}: chi^2 {:.10g}, {:.2f} ms an evaluation, {:.1f} MiB\n", likelihood.name(), result.chi_squared,
             result.milliseconds, static_cast<double>(likelihood.memory_bytes()) / 0x1p20);
  return result;
}

/// The image that a likelihood and the priors make, from an image on.
torch::Tensor fit(const std::shared_ptr<mpol::Likelihood>& likelihood, const torch::Tensor& start, int epochs) {
  auto model = mpol::GriddedNet(
      mpol::GriddedNetOptions(likelihood->coords()).base_cube(mpol::softplus_mapping().inverse(start.clamp_min(1e-4))));
  const auto objective = mpol::Objective(likelihood, {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(2e-3)});
  mpol::Trainer(model, objective, mpol::TrainOptions().epochs(epochs)).fit();
  return model->make_sky().detach();
}

void run(const std::string& input, const std::string& output) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto channels = mpol::ChannelMap::cube(visibilities.nchan());
  auto loose = mpol::LooseLikelihood(coords, visibilities, channels, mpol::NufftOptions{1e-9});
  auto exact = mpol::ExactLikelihood(coords, visibilities, channels);

  const auto sky = mpol::usual_image(coords, visibilities, channels);  // what `mpol image` makes
  const auto a = evaluate(*loose, sky), b = evaluate(*exact, sky);
  fmt::print("the gradients differ by {:.1e} of their largest pixel\n",
             ((a.gradient - b.gradient).abs().max() / b.gradient.abs().max()).item<double>());

  // Student's noise makes little of outliers. Its -2 ln L is no sum of squares, so that each visibility is looked at each time;
  // it is not convex either, and begins with the image of Gaussian noise.
  auto student = mpol::NoiseLikelihood(coords, visibilities, channels, mpol::NoiseModel::student(4));
  const auto robust = fit(student.ptr(), sky, 100);
  const auto residuals = [&](const torch::Tensor& image) {
    const auto left = mpol::losses::residual_visibilities(coords, image, visibilities, channels);
    return mpol::residual_statistics(left.data() * left.weights().sqrt());
  };
  for (const auto& [name, image] : {std::pair{"gaussian", sky}, std::pair{"student", robust}}) {
    const auto statistics = residuals(image);
    fmt::print("{:8} noise: {:.4g} Jy; half of all residuals lie below {:.4f} sigma, {:.2f} % beyond four of theirs\n", name,
               mpol::flux(image, coords).sum().item<double>(), 0.6745 * statistics.sigma_factor, 100 * statistics.beyond_four);
  }
  mpol::io::write_fits(output, robust, coords);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "loose_and_exact.fits");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "loose_and_exact: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
