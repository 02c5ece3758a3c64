#include "../catch.h"

#include <memory>

#include <torch/types.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/regularizers/list.h>
#include <mpol_cpp/train/trainer.h>

#include "../compare.h"
#include "../temporary_folder.h"
#include "faulty_blocks.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Images of least chi^2 and total variation, each from the last one.
class ConvexImager final : public CalibrationImager {
 public:
  int images_left = 1000;  ///< before it is interrupted

  Tensor image_of(const Visibilities& calibrated) override {
    if (images_left-- == 0) return {};
    const ExactLikelihood likelihood(gain_grid, calibrated, ChannelMap::cube(1));
    const auto unit = noise_unit(gain_grid, calibrated, 1, likelihood->normalizer()).slope;
    const Objective objective(likelihood, {terms::sparsity(unit), terms::tv_image(unit)});
    Trainer(model_, objective, TrainOptions().optimizer(OptimizerKind::pogm).tolerance(1e-4).epochs(5000)).fit();
    const torch::NoGradGuard no_gradient;
    return model_->make_sky();
  }
  NamedTensors state() const override {
    NamedTensors state;
    for (const auto& parameter : model_->named_parameters()) state[parameter.key()] = parameter.value().detach();
    return state;
  }
  void load_state(const NamedTensors& state) override {
    const torch::NoGradGuard no_gradient;
    for (auto& parameter : model_->named_parameters()) parameter.value().copy_(state.at(parameter.key()));
  }

 private:
  GriddedNet model_{GriddedNetOptions(gain_grid).pixel_mapping(nonnegative_mapping()).dtype(torch::kFloat64)};
};

const std::vector<BlockGain> faults = {{0.02, -0.03, 1.2, 0.5}, {-0.01, 0.04, 0.8, 1.9}, {0, 0, 1, 1}};

BlockCalibration calibration_of(const FaultyData& data, ConvexImager& imager, const BlockCalibrationOptions& options) {
  return calibrate_blocks(gain_grid, data.visibilities, ChannelMap::cube(1), data.blocks, imager,
                          BlockCalibrationOptions(options).kinds({true, true, true}));
}

/// The mean square of differences between blocks over their errors.
double mean_pull(const BlockCalibration& found, const std::vector<BlockGain>& truth) {
  double squares = 0;
  int count = 0;
  for (std::size_t b = 1; b < truth.size(); ++b) {
    const auto &one = found.blocks[b], &zero = found.blocks[0];
    const auto pull = [&](double difference, double wanted, double error, double other) {
      squares += std::pow((difference - wanted) / std::hypot(error, other), 2), ++count;
    };
    pull(one.gain.east - zero.gain.east, truth[b].east - truth[0].east, one.error.east, zero.error.east);
    pull(one.gain.north - zero.gain.north, truth[b].north - truth[0].north, one.error.north, zero.error.north);
    pull(std::log(one.gain.amplitude / zero.gain.amplitude), std::log(truth[b].amplitude / truth[0].amplitude),
         one.error.amplitude / one.gain.amplitude, zero.error.amplitude / zero.gain.amplitude);
  }
  return squares / count;
}

}  // namespace

TEST_CASE("gains of blocks are found together with the image, within their errors", "[calibration]") {
  double squares = 0;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    ConvexImager imager;
    const auto found = calibration_of(faulty_data(faults, 600, 1000 * seed), imager, {});
    CHECK(found.converged);
    CHECK(found.rounds < 20);
    squares += mean_pull(found, faults) / 4;
    for (std::size_t b = 0; b < 3; ++b) CHECK(found.blocks[b].gain.weight_scale == Approx(faults[b].weight_scale).epsilon(0.25));
  }
  INFO("mean square of the deviations over their errors: " << squares);
  CHECK(squares < 2.2);
}

TEST_CASE("at the end neither the image nor the gains can be made better alone", "[calibration]") {
  const auto data = faulty_data(faults, 400, 77);
  ConvexImager imager;
  const auto found = calibration_of(data, imager, BlockCalibrationOptions().tolerance(0.01));
  REQUIRE(found.converged);
  ConvexImager fresh;  // from another start
  const auto sky = fresh.image_of(calibrated(data.visibilities, data.blocks, found.gains()));
  const auto again =
      fit_gains(gain_grid, sky, data.visibilities, ChannelMap::cube(1), data.blocks, {true, true, true}, found.gains());
  for (std::size_t b = 0; b < 3; ++b) {
    CHECK(std::abs(again[b].gain.east - found.blocks[b].gain.east) < 0.15 * found.blocks[b].error.east);
    CHECK(std::abs(again[b].gain.amplitude - found.blocks[b].gain.amplitude) < 0.15 * found.blocks[b].error.amplitude);
    CHECK(again[b].gain.weight_scale == Approx(found.blocks[b].gain.weight_scale).epsilon(5e-3));
  }
}

TEST_CASE("a calibration that was interrupted goes on to the same bits", "[calibration]") {
  const TemporaryFolder folder;
  const auto data = faulty_data(faults, 200, 5);
  ConvexImager whole;
  const auto expected = calibration_of(data, whole, {});
  const auto options = BlockCalibrationOptions().state(folder.path() / "blocks.safetensors").fingerprint({"a = 1"});
  std::int64_t rounds = 0;
  for (int run = 0; run < 20; ++run) {
    ConvexImager imager;
    imager.images_left = run == 0 ? 0 : 2;
    const auto found = calibration_of(data, imager, options);
    CHECK(found.rounds >= rounds);
    rounds = found.rounds;
    if (found.interrupted) continue;
    REQUIRE(found.converged == expected.converged);
    CHECK(found.rounds == expected.rounds);
    for (std::size_t b = 0; b < 3; ++b) CHECK(found.blocks[b].gain == expected.blocks[b].gain);
    ConvexImager idle;
    idle.images_left = 0;
    CHECK_FALSE(calibration_of(data, idle, options).interrupted);  // there is nothing left to do
    CHECK(calibration_of(data, idle, BlockCalibrationOptions(options).fingerprint({"a = 2"})).interrupted);
    return;
  }
  FAIL("it never ended");
}

TEST_CASE("options out of range are refused", "[calibration][quick]") {
  const auto data = faulty_data(faults, 20, 5);
  ConvexImager imager;
  CHECK_THROWS_AS(calibration_of(data, imager, BlockCalibrationOptions().rounds(0)), ValueError);
  CHECK_THROWS_AS(calibration_of(data, imager, BlockCalibrationOptions().tolerance(0)), ValueError);
}
