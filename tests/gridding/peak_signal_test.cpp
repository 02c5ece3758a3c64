#include "catch.h"

#include <cmath>
#include <numbers>

#include <ATen/ops/full_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/peak_signal.h>

#include "compare.h"
#include "observation.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("the peak of a source over the noise is its flux times the root of the weights", "[gridding][quick]") {
  const GridCoords coords(0.05, 32);
  const auto observed = DataAverager(coords, random_observation(coords, 2, 4000, torch::kFloat64, 11), unchecked()).to_dataset();
  const auto cells = observed->cells(), pixels = cells % (32 * 32);
  // A source of 2 Jy three pixels up and five aside, in the second channel; the first one has the tenth of it.
  const auto angle = (pixels.div(32, "floor") * 3 + pixels % 32 * 5).to(torch::kFloat64) * (2 * M_PI / 32);
  const auto flux = torch::where(cells >= 32 * 32, 2.0, 0.2).to(torch::kFloat64);
  const auto with = [&](double factor, double weights) {
    return GriddedDataset(coords, 2, cells, at::polar(flux * factor, angle), observed->weights() * weights);
  };
  const double root = std::sqrt(observed->weights().masked_select(cells >= 32 * 32).sum().item<double>());
  CHECK(peak_signal_to_noise(with(1, 1)) == Approx(2 * root));
  CHECK(peak_signal_to_noise(with(10, 1)) == Approx(20 * root));
  CHECK(peak_signal_to_noise(with(1, 4)) == Approx(4 * root));
}

TEST_CASE("noise alone has a peak of a few times itself", "[gridding][quick]") {
  const GridCoords coords(0.05, 32);
  const auto observed = DataAverager(coords, random_observation(coords, 1, 4000, torch::kFloat64, 11), unchecked()).to_dataset();
  const auto& weights = observed->weights();
  torch::manual_seed(3);
  const auto noise =
      at::complex(at::normal(at::zeros_like(weights), 1.0), at::normal(at::zeros_like(weights), 1.0)) / weights.sqrt();
  const double peak = peak_signal_to_noise(GriddedDataset(coords, 1, observed->cells(), noise, weights));
  CHECK(peak > 2);
  CHECK(peak < 5.5);
}

TEST_CASE("dirty peaks have a sign, and larger sources stand out on larger scales", "[gridding][quick]") {
  const GridCoords coords(0.05, 64);
  const auto observed = DataAverager(coords, random_observation(coords, 1, 6000, torch::kFloat64, 11), unchecked()).to_dataset();
  const auto cells = observed->cells();
  const auto index = [](const Tensor& all) { return torch::where(all > 32, all - 64, all).to(torch::kFloat64); };
  const auto squares = index(cells.div(64, "floor")).square() + index(cells % 64).square();
  const auto peaks_of = [&](double flux, double width) {  // of the Gaussian's transform, cells
    const auto data = flux * torch::exp(squares / (-2 * width * width));
    return dirty_peaks(GriddedDataset(coords, 1, cells, data.to(torch::kComplexDouble), observed->weights()));
  };
  const double root = std::sqrt(observed->weights().sum().item<double>());
  const auto point = peaks_of(2, 1e6), hole = peaks_of(-2, 1e6), broad = peaks_of(2, 3);
  CHECK(point.brightest == Approx(2 * root));
  CHECK(point.on_any_scale == Approx(2 * root));
  CHECK(point.darkest < 0.5 * point.brightest);
  CHECK(hole.darkest == Approx(point.brightest));
  CHECK(hole.brightest == Approx(point.darkest));
  CHECK(hole.on_any_scale == Approx(point.on_any_scale));
  CHECK(broad.on_any_scale > 1.3 * broad.brightest);
  CHECK(hole.share_on_scale == Approx(point.share_on_scale));
  CHECK(hole.of_either_sign().share_on_scale == hole.share_on_scale);
  CHECK(point.share_on_scale < 0.01);
  // A taper of the source's own shape shows it best, sqrt(2) times as wide: above 0.7 of the peak within 0.84 of its sigma.
  const double area = std::numbers::pi * std::pow(0.84 * std::sqrt(2.0) / (2 * std::numbers::pi * 3), 2);  // of the field
  CHECK(broad.share_on_scale > 0.5 * area);
  CHECK(broad.share_on_scale < 2 * area);
  CHECK(hole.of_either_sign().brightest == hole.darkest);
  CHECK(point.of_either_sign().brightest == point.brightest);
}

TEMPLATE_TEST_CASE("what a point fills is the area in which its beam exceeds the noise", "[gridding][quick]", float, double) {
  const GridCoords coords(0.05, 64);
  const auto all = DataAverager(coords, random_observation(coords, 2, 6000, torch::kFloat64, 11), unchecked()).to_dataset();
  const auto signed_index = [](const Tensor& index) { return torch::where(index > 32, index - 64, index).to(torch::kFloat64); };
  const auto squares = [&](const Tensor& cells) {
    return signed_index((cells % (64 * 64)).div(64, "floor")).square() + signed_index(cells % 64).square();
  };
  const auto near = (squares(all->cells()) < 12 * 12).nonzero().squeeze(1);  // so that the beam has some pixels
  const GriddedDataset observed(coords, 2, all->cells().index_select(0, near), all->visibilities().index_select(0, near),
                                all->weights().index_select(0, near));
  const double noise = 1 / std::sqrt(observed->weights().masked_select(observed->cells() < 64 * 64).sum().item<double>());
  const double longest = squares(observed->cells()).max().sqrt().template item<double>();
  const double sigma = 1.2 * 64 / longest / std::sqrt(8 * std::log(2.0));  // pixels
  auto sky = torch::zeros({2, 64, 64}, c10::CppTypeToScalarType<TestType>::value);
  sky[0][20][31] = 400 * noise / coords.cell_area();
  const auto share = [&](double factor) { return std::numbers::pi * 2 * sigma * sigma * std::log(400 / factor) / (64 * 64); };
  for (const double factor : {1.0, 8.0}) CHECK(filled_share(sky, observed, factor) == Approx(share(factor) / 2).epsilon(0.12));
  CHECK(filled_share(sky * 0, observed) == 0);
}

TEST_CASE("peaks and shares of channels are those of each channel by itself", "[gridding][quick]") {
  const GridCoords coords(0.05, 32);
  const auto observed = DataAverager(coords, random_observation(coords, 3, 4000, torch::kFloat64, 11), unchecked()).to_dataset();
  constexpr std::int64_t pixels = 32 * 32;
  const auto channel_of = observed->cells().div(pixels, "floor");
  const auto weights = observed->weights() * (channel_of + 1).to(torch::kFloat64);
  const auto data = at::full_like(weights, 0.05) / (channel_of * 3 + 1).to(torch::kFloat64);
  const GriddedDataset all(coords, 3, observed->cells(), data.to(torch::kComplexDouble), weights);
  const auto peaks = dirty_peaks_of_channels(all);
  const auto sky = at::rand({3, 32, 32}, torch::kFloat64) * 0.02;
  const auto shares = filled_shares(sky, all);
  REQUIRE(peaks.size() == 3);
  REQUIRE(shares.size() == 3);
  for (std::int64_t c = 0; c < 3; ++c) {
    const auto own = (channel_of == c).nonzero().squeeze(1);
    const GriddedDataset alone(coords, 1, observed->cells().index_select(0, own) - c * pixels,
                               data.index_select(0, own).to(torch::kComplexDouble), weights.index_select(0, own));
    const auto expected = dirty_peaks(alone);
    const auto& found = peaks[static_cast<std::size_t>(c)];
    CHECK(found.brightest == Approx(expected.brightest));
    CHECK(found.darkest == Approx(expected.darkest));
    // Where one scale shows enough, no others are looked at.
    if (expected.on_any_scale < 20) CHECK(found.on_any_scale == Approx(expected.on_any_scale));
    else CHECK(found.on_any_scale >= 20);
    CHECK(shares[static_cast<std::size_t>(c)] == filled_share(sky.narrow(0, c, 1), alone));
  }
  CHECK(filled_share(sky, all) == Approx((shares[0] + shares[1] + shares[2]) / 3));
}
