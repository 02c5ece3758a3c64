#include "../catch.h"

#include <torch/types.h>

#include <mpol_cpp/calibration/shared_cells.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/block_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>

#include "../compare.h"
#include "faulty_blocks.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const std::vector<BlockGain> some_gains = {{0.02, -0.03, 1.2, 0.5}, {-0.01, 0.04, 0.7, 2}, {0, 0, 1, 1}};

}  // namespace

TEMPLATE_TEST_CASE("calibrated data undo the gains that data were made with", "[calibration][quick]", float, double) {
  const auto faulty = faulty_data(some_gains, 60, 1, dtype_of<TestType>(), /*noise=*/0);
  const auto right = faulty_data({{}, {}, {}}, 60, 1, dtype_of<TestType>(), 0);
  const auto mended = calibrated(faulty.visibilities, faulty.blocks, some_gains);
  CHECK(mended.data().scalar_type() == complex_dtype_of<TestType>());
  CHECK(relative_error(mended.data(), right.visibilities.data()) < tolerance<TestType>(1e-14, 1e-6));
  for (std::int64_t b = 0; b < 3; ++b) {
    const auto& gain = some_gains[static_cast<std::size_t>(b)];
    const auto part = [&](const Visibilities& all) { return all.weights()[0].narrow(0, 60 * b, 60).to(torch::kFloat64); };
    const double factor = gain.weight_scale * gain.amplitude * gain.amplitude;
    CHECK(relative_error(part(mended), part(faulty.visibilities) * factor) < tolerance<TestType>(1e-14, 1e-6));
  }
}

TEST_CASE("chi^2 of calibrated data is that of the data with the gains in the model", "[calibration][quick]") {
  const auto faulty = faulty_data(some_gains, 60, 3);
  const auto sky = random_image(gain_grid, 1, torch::kFloat64, 5);
  std::vector<DataBlock> data;
  for (std::int64_t b = 0; b < 3; ++b) {
    data.push_back(DataBlock(faulty.visibilities.select(torch::arange(60 * b, 60 * (b + 1))), ChannelMap::cube(1))
                       .fit_shift()
                       .fit_amplitude()
                       .fit_weight_scale());
  }
  auto joint = BlockLikelihood(gain_grid, data, BlockLikelihoodOptions().transform(NufftOptions{1e-12}));
  double logarithms = 0;
  {
    const torch::NoGradGuard no_gradient;
    auto parameters = joint->named_parameters();
    for (std::size_t b = 0; b < 3; ++b) {
      const auto& gain = some_gains[b];
      const auto name = [&](const char* what) { return what + std::string("_") + std::to_string(b); };
      parameters[name("shift")].copy_(torch::tensor(std::vector<double>{gain.east, gain.north}, torch::kFloat64) / 0.05);
      parameters[name("log_amplitude")].fill_(std::log(gain.amplitude));
      parameters[name("log_weight_scale")].fill_(std::log(gain.weight_scale));
      logarithms += 2 * 60 * std::log(gain.weight_scale);
    }
  }
  auto loose = LooseLikelihood(gain_grid, calibrated(faulty.visibilities, faulty.blocks, some_gains), ChannelMap::cube(1),
                               NufftOptions{1e-12});
  CHECK(loose->chi_squared(sky).item<double>() - logarithms == Approx(joint->chi_squared(sky).item<double>()).epsilon(1e-11));
}

TEST_CASE("the weight that blocks share is that in cells of several, partners included", "[calibration][quick]") {
  const double du = gain_grid.du();
  // Cells (3, 2), (-3, -2), (5, 5), (3, 2): the first two are partners.
  const auto u = torch::tensor(std::vector<double>{3.1, -2.9, 5.2, 2.8, 7}, torch::kFloat64) * du;
  const auto v = torch::tensor(std::vector<double>{2.0, -2.1, 5.0, 1.9, -7}, torch::kFloat64) * du;
  const Visibilities data(Baselines::in_lambda(u, v), torch::ones({1, 5}, torch::kComplexDouble),
                          torch::tensor(std::vector<double>{1, 2, 3, 4, 5}, torch::kFloat64).unsqueeze(0));
  const SampleBlocks blocks{torch::tensor(std::vector<std::int64_t>{0, 1, 0, 0, 2}, torch::kInt64), {"a", "b", "c"}};
  const SharedCells cells(data, blocks, du);
  const auto& shared = cells.shared();
  CHECK(shared[0] == Approx(5.0 / 8));
  CHECK(shared[1] == Approx(1));
  CHECK(shared[2] == 0);
  // Cell (3, 2) has the weights 1, 2 (its partner's) and 4, of which 5 are of the first block.
  const auto others = torch::tensor(std::vector<double>{2.0 / 7, 5.0 / 7, 0, 2.0 / 7, 0}, torch::kFloat64);
  CHECK(relative_error(cells.part_of_others(0, 0, 5), others) < 1e-14);
  CHECK(same(cells.part_of_others(0, 1, 3), cells.part_of_others(0, 0, 5).slice(0, 1, 3)));
  CHECK_THROWS_AS(SharedCells(data, blocks, 0), ValueError);
}

TEST_CASE("gains that are none, and blocks of other samples, are refused", "[calibration][quick]") {
  const auto faulty = faulty_data({{}, {}}, 10, 1);
  const auto& [data, blocks] = faulty;
  CHECK_THROWS_AS(calibrated(data, blocks, {{}}), ValueError);
  CHECK_THROWS_WITH(calibrated(data, blocks, {{}, {0, 0, 0, 1}}),
                    ContainsSubstring("window 1") && ContainsSubstring("amplitude 0"));
  CHECK_THROWS_AS(calibrated(data, blocks, {{}, {0, 0, 1, -2}}), ValueError);
  CHECK_THROWS_AS(calibrated(data, blocks, {{}, {NAN, 0, 1, 1}}), ValueError);
  CHECK_THROWS_AS(calibrated(data, {blocks.indices.narrow(0, 0, 19), blocks.names}, {{}, {}}), ShapeError);
  CHECK_THROWS_AS(calibrated(data, {blocks.indices, {"window 0"}}, {{}}), ValueError);
}
