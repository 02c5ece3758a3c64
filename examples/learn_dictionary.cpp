// Learns the filters of a convolutional dictionary from pieces of an image, one after the other.
//
// usage: learn_dictionary [image.fits] [figure.png] [filters.safetensors] [pieces]
// The figure shows the filters before and after.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <torch/utils.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>
#include <mpol_cpp/plot/figure_writer.h>

namespace {

using mpol::Tensor;

constexpr std::int64_t filters_count = 16, filter_size = 8, piece_size = 96;
constexpr double lambda = 0.05;

/// What is left when the smooth part is taken away, which few small filters would make badly: min |x - s|^2/2 + 5 |D x|^2/2.
Tensor details(const Tensor& image) {
  const auto rows = image.size(-2), columns = image.size(-1);
  const auto slopes = mpol::squared_differences(rows, columns, image.options());
  return image - at::fft_irfft2(at::fft_rfft2(image) / (1 + 5 * slopes), at::IntArrayRef{rows, columns});
}

/// Filters side by side in a square, with a pixel between them.
mpol::plot::ImagePanel mosaic(const std::string& title, const Tensor& filters) {
  const auto side = std::int64_t{4}, pitch = filter_size + 1;
  auto picture = at::zeros({side * pitch - 1, side * pitch - 1}, filters.options());
  for (std::int64_t m = 0; m < filters.size(0); ++m) {
    picture.narrow(0, m / side * pitch, filter_size).narrow(1, m % side * pitch, filter_size).copy_(filters[m]);
  }
  const auto half = static_cast<double>(picture.size(0)) / 2, most = filters.abs().max().item<double>();
  mpol::plot::ImagePanel panel;
  panel.title = title;
  panel.values = picture;
  panel.extent = {half, -half, -half, half};
  panel.scale = mpol::plot::ColorScale::diverging;
  panel.lower = -most;
  panel.upper = most;
  return panel;
}

void run(const std::string& input, const std::string& output, const std::string& dictionary, std::int64_t pieces) {
  torch::manual_seed(1);
  const auto file = mpol::io::read_fits(input);
  const auto image = details((file.cube / file.cube.std()).to(torch::kFloat32));  // (1, npix, npix)
  const auto first = at::randn({filters_count, filter_size, filter_size}, image.options());

  mpol::DictionaryLearner learner(first, mpol::DictionaryLearningOptions(lambda));
  const auto before = learner.filters();
  const auto value = [&](const Tensor& filters) {
    mpol::ConvolutionalCoder coder(filters, image, mpol::ConvolutionalCodingOptions(lambda));
    return coder.solve().objective[0];
  };
  const auto value_before = value(before);
  for (std::int64_t k = 0; k < pieces; ++k) {
    const auto corner = at::randint(image.size(-1) - piece_size, {2}, torch::kInt64);
    const auto row = corner[0].item<std::int64_t>(), column = corner[1].item<std::int64_t>();
    const auto report = learner.learn(image.narrow(-2, row, piece_size).narrow(-1, column, piece_size));
    fmt::print("piece {:2d}: functional {:.6g} after {} iterations\n", k + 1, report.objective[0], report.iterations);
  }
  fmt::print("functional of the image: {:.6g} before, {:.6g} after\n", value_before, value(learner.filters()));

  mpol::write_safetensors(dictionary, learner.state());
  mpol::plot::Page page;
  page.columns = 2;
  page.panels = {mosaic("filters before", before), mosaic("filters after", learner.filters())};
  if (mpol::plot::write_figure(output, page)) fmt::print("figure written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/simulated_disc_truth.fits", argc > 2 ? argv[2] : "learn_dictionary.png",
        argc > 3 ? argv[3] : "filters.safetensors", argc > 4 ? std::stoll(argv[4]) : 30);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "learn_dictionary: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
