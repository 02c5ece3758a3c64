#include "../catch.h"

#include <torch/types.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/block_likelihood.h>

#include "../compare.h"
#include "faulty_blocks.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr GainKinds all_kinds{true, true, true};

std::vector<FittedGain> fit_of(const FaultyData& data, const GainKinds& kinds, const Tensor& sky = gain_sky()) {
  return fit_gains(gain_grid, sky, data.visibilities, ChannelMap::cube(1), data.blocks, kinds,
                   std::vector<BlockGain>(static_cast<std::size_t>(data.blocks.size())));
}

/// The same gains with the means that fit_gains() makes zero, of blocks of as many samples: they know s a^2 each.
std::vector<BlockGain> centered(std::vector<BlockGain> gains) {
  for (int i = 0; i < 30; ++i) {
    double east = 0, north = 0, logarithm = 0, all = 0;
    for (const auto& gain : gains) {
      const double knowledge = gain.weight_scale * gain.amplitude * gain.amplitude;
      east += knowledge * gain.east, north += knowledge * gain.north, logarithm += knowledge * std::log(gain.amplitude);
      all += knowledge;
    }
    for (auto& gain : gains) gain.east -= east / all, gain.north -= north / all, gain.amplitude /= std::exp(logarithm / all);
  }
  return gains;
}

}  // namespace

TEST_CASE("gains of data of a known sky are found, by their errors", "[calibration]") {
  const std::vector<BlockGain> faults = centered({{0.02, -0.03, 1.2, 0.5}, {-0.01, 0.04, 0.7, 2}, {0, 0, 1, 1}});
  double squares = 0;
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto data = faulty_data(faults, 300, 100 * seed);
    const auto fits = fit_gains(gain_grid, gain_sky(), data.visibilities, ChannelMap::cube(1), data.blocks, all_kinds, faults);
    for (std::size_t b = 1; b < 3; ++b) {
      const auto pull = [&](double found, double before, double wanted, double error, double error_before) {
        squares += std::pow((found - before - wanted) / std::hypot(error, error_before), 2), ++count;
      };
      const auto &one = fits[b], &zero = fits[0];
      pull(one.gain.east, zero.gain.east, faults[b].east - faults[0].east, one.error.east, zero.error.east);
      pull(one.gain.north, zero.gain.north, faults[b].north - faults[0].north, one.error.north, zero.error.north);
      pull(std::log(one.gain.amplitude), std::log(zero.gain.amplitude), std::log(faults[b].amplitude / faults[0].amplitude),
           one.error.amplitude / one.gain.amplitude, zero.error.amplitude / zero.gain.amplitude);
    }
    for (std::size_t b = 0; b < 3; ++b) {
      const double scale = fits[b].gain.weight_scale / faults[b].weight_scale;
      CHECK(scale == Approx(1).epsilon(0.25));
      CHECK(fits[b].samples == 300);
      CHECK(fits[b].chi_squared * fits[b].gain.weight_scale == Approx(600));
    }
  }
  CHECK(squares / count > 0.25);  // the errors allow for an image that is fitted too
  CHECK(squares / count < 1.2);
}

TEST_CASE("weighted means of shift and ln amplitude are zero", "[calibration][quick]") {
  const auto fits = fit_of(faulty_data({{0.05, 0.03, 1.2, 1}, {0.06, 0.02, 1.4, 1}}, 200, 7), {true, true, false});
  double logarithm = 0, east = 0, weights = 0;
  for (const auto& fit : fits) {
    const double knowledge = std::pow(fit.gain.amplitude / fit.error.amplitude, 2);
    logarithm += knowledge * std::log(fit.gain.amplitude), weights += knowledge;
    east += fit.gain.east / (fit.error.east * fit.error.east);
  }
  CHECK(std::abs(logarithm / weights) < 0.01);  // by what is known before the means are taken out
  CHECK(std::abs(fits[0].gain.east) < 0.01);
  CHECK(fits[0].gain.weight_scale == 1);
  CHECK(fits[0].error.weight_scale == 0);
}

TEST_CASE("what is not to be fitted stays as it is", "[calibration][quick]") {
  const auto data = faulty_data({{0.02, 0, 1.1, 1}, {-0.02, 0, 0.9, 0.5}}, 200, 7);
  const auto shift = fit_of(data, {true, false, false}), scale = fit_of(data, {false, false, true});
  CHECK(shift[0].gain.amplitude == 1);
  CHECK(shift[0].gain.weight_scale == 1);
  CHECK(shift[0].gain.east - shift[1].gain.east == Approx(0.04).margin(6e-3));
  CHECK(scale[1].gain.east == 0);
  CHECK(scale[1].gain.amplitude == 1);
  CHECK(scale[1].gain.weight_scale < 0.5);  // what amplitude and shift do looks like noise
}

TEST_CASE("a shift of several fringes is found", "[calibration][quick]") {
  const auto fits = fit_of(faulty_data({{0.3, -0.4, 1, 1}, {-0.3, 0.4, 1, 1}}, 300, 9), {true, false, false});
  CHECK(fits[0].gain.east - fits[1].gain.east == Approx(0.6).margin(3e-3));
  CHECK(fits[0].gain.north - fits[1].gain.north == Approx(-0.8).margin(3e-3));
}

TEST_CASE("gains make the joint likelihood smallest, but for the means", "[calibration][quick]") {
  const auto data = faulty_data({{0.02, -0.03, 1.2, 0.5}, {-0.01, 0.04, 0.7, 2}}, 150, 3);
  auto gains = std::vector<BlockGain>{};
  for (const auto& fit : fit_of(data, all_kinds)) gains.push_back(fit.gain);
  std::vector<DataBlock> blocks;
  for (std::int64_t b = 0; b < 2; ++b) {
    blocks.push_back(DataBlock(data.visibilities.select(torch::arange(150 * b, 150 * (b + 1))), ChannelMap::cube(1))
                         .fit_shift()
                         .fit_amplitude()
                         .fit_weight_scale());
  }
  auto joint = BlockLikelihood(gain_grid, blocks, BlockLikelihoodOptions().transform(NufftOptions{1e-12}));
  const auto value_of = [&](double of_shift, double of_amplitude, double of_scale) {
    const torch::NoGradGuard no_gradient;
    auto parameters = joint->named_parameters();
    for (int b = 0; b < 2; ++b) {
      const auto& gain = gains[static_cast<std::size_t>(b)];
      const double sign = b == 0 ? 1 : -1;
      const auto own = std::to_string(b);
      parameters["shift_" + own].copy_(
          torch::tensor(std::vector<double>{gain.east + sign * of_shift, gain.north}, torch::kFloat64) / 0.05);
      parameters["log_amplitude_" + own].fill_(std::log(gain.amplitude) + sign * of_amplitude);
      parameters["log_weight_scale_" + own].fill_(std::log(gain.weight_scale) + sign * of_scale);
    }
    return joint->chi_squared(gain_sky()).item<double>();
  };
  const double least = value_of(0, 0, 0);
  for (const double sign : {-1.0, 1.0}) {
    CHECK(value_of(sign * 3e-3, 0, 0) > least);
    CHECK(value_of(0, sign * 1e-2, 0) > least);
    CHECK(value_of(0, 0, sign * 0.1) > least);
  }
}

TEST_CASE("what no gain can be fitted to is refused", "[calibration][quick]") {
  const auto data = faulty_data({{}, {}}, 50, 1);
  const auto one = faulty_data({{}}, 50, 1);
  CHECK_THROWS_AS(fit_of(one, all_kinds), ValueError);
  CHECK_THROWS_AS(fit_of(data, {}), ValueError);
  CHECK_THROWS_WITH(fit_of(data, {false, true, false}, -gain_sky()),
                    ContainsSubstring("window 0") && ContainsSubstring("amplitude"));
  CHECK_THROWS_AS(fit_gains(gain_grid, gain_sky(), data.visibilities, ChannelMap::cube(1), data.blocks, all_kinds, {{}}),
                  ValueError);
}
