#include "catch.h"

#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "golden.h"
#include "problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

Objective objective_of(const GriddedDataset& dataset, double sparsity, double tv) {
  return Objective(GriddedLikelihood(dataset), {terms::sparsity(sparsity), terms::tv_image(tv)});
}

}  // namespace

TEMPLATE_TEST_CASE("600 epochs of the GPU tutorial's problem end where MPoL's do", "[train][slow]", float, double) {
  const auto era = GENERATE(std::string("v03"), std::string("v01"));
  INFO(era);
  const Golden golden("tutorial_gpu");
  const GridCoords coords(golden.number("in_cell_size"), golden.number<std::int64_t>("in_npix"));
  const auto wide = [&](const char* name) { return golden(name).to(torch::kFloat64); };
  const Visibilities visibilities(Baselines::in_lambda(wide("in_uu"), wide("in_vv")), golden("in_data").to(torch::kComplexDouble),
                                  wide("in_weight"));
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().hermitian_pairs(era == "v01")).to_dataset();
  CHECK(dataset->ncells() == golden.number<std::int64_t>("out_" + era + "_cells"));

  const auto dtype = dtype_of<TestType>();
  auto model = GriddedNet(GriddedNetOptions(coords).start(golden.number("in_base_start")).dtype(dtype));
  const auto objective = objective_of(dataset, golden.number("in_lambda_sparsity"), golden.number("in_lambda_tv"));
  const auto options =
      TrainOptions().learning_rate(golden.number("in_lr")).epochs(golden.number<std::int64_t>("in_epochs")).dtype(dtype);
  const auto result = Trainer(model, objective, options).fit();

  const auto loss_bound = tolerance<TestType>(1e-10, 1e-5);
  const auto every50 = golden("out_" + era + "_loss_every50");
  for (std::int64_t i = 0; i < every50.size(0); ++i) {
    CHECK(result.history.at(static_cast<std::size_t>(50 * i)).total() ==
          Approx(every50[i].template item<double>()).epsilon(loss_bound));
  }
  const auto terms = golden("out_" + era + "_nll_sparsity_tv_every50");
  const double lambdas[] = {1, golden.number("in_lambda_sparsity"), golden.number("in_lambda_tv")};
  for (std::int64_t i = 0; i < terms.size(0); ++i) {
    for (std::int64_t term = 0; term < 3; ++term) {
      const double expected = terms[i][term].template item<double>() * lambdas[term];
      CAPTURE(50 * i, term);
      CHECK(result.history.at(static_cast<std::size_t>(50 * i)).values.at(static_cast<std::size_t>(1 + term)) ==
            Approx(expected).epsilon(loss_bound));
    }
  }
  CHECK(result.loss.total() == Approx(golden.number("out_" + era + "_loss_after")).epsilon(loss_bound));
  const auto image = golden("out_" + era + "_image_sky").to(torch::kFloat64);
  CHECK(relative_error(model->make_sky()[0], image) < tolerance<TestType>(1e-6, 1e-4));
}

TEST_CASE("the real observation gives MPoL's loss at every epoch, and its image", "[train][slow]") {
  const auto expected = io::read_npz_arrays(std::filesystem::path(MPOL_TEST_DATA_DIR) / "hd142527_band9_mpol.npz");
  const auto number = [&](const char* name) { return expected.at(name).item<double>(); };
  const auto visibilities = io::read_npz(std::filesystem::path(MPOL_DATA_DIR) / "hd142527_band9.npz");
  const GridCoords coords(number("in_cell_size"), expected.at("in_npix").item<std::int64_t>());
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::warn)).to_dataset();
  CHECK(dataset->ncells() == expected.at("out_n_cells").item<std::int64_t>());

  const auto objective = objective_of(dataset, number("in_lambda_sparsity"), number("in_lambda_tv"));
  const auto epochs = expected.at("in_epochs").item<std::int64_t>();
  const auto fit = [&](GriddedNet& model) {
    return Trainer(model, objective, TrainOptions().learning_rate(number("in_learning_rate")).epochs(epochs)).fit();
  };
  const auto options = GriddedNetOptions(coords).start(number("in_base_start")).dtype(torch::kFloat64);
  GriddedNet model(options), other(GriddedNetOptions(options).start(number("in_base_start") * (1 + 1e-15)));
  const auto result = fit(model), nearby = fit(other);

  const auto& history = expected.at("out_loss_nll_sparsity_tv");
  REQUIRE(history.size(0) == epochs);
  // Rounding grows where Adam meets a kink of the total variation: an epoch is determined where a start that differs in
  // its last digit gives the same loss. There the loss must be MPoL's to 1e-9, elsewhere to 1e-8.
  double worst = 0, worst_determined = 0;
  std::int64_t determined = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const auto& loss = result.history.at(static_cast<std::size_t>(epoch));
    const double error = std::max(std::abs(loss.total() / history[epoch][0].item<double>() - 1),
                                  std::abs(loss.nll() / history[epoch][1].item<double>() - 1));
    worst = std::max(worst, error);
    const double change = std::abs(nearby.history.at(static_cast<std::size_t>(epoch)).total() / loss.total() - 1);
    if (change > 1e-10) continue;
    worst_determined = std::max(worst_determined, error);
    ++determined;
  }
  CHECK(determined > epochs / 2);
  CHECK(worst_determined < 1e-9);
  CHECK(worst < 1e-8);
  CHECK(result.loss.total() == Approx(number("out_loss_after")).epsilon(1e-9));
  CHECK(relative_error(model->make_sky()[0], expected.at("out_image_sky").to(torch::kFloat64)) < 1e-6);
  CHECK(model->flux().item<double>() == Approx(number("out_flux")).epsilon(1e-8));
}
