#include "catch.h"

#include <cmath>

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
