#include "catch.h"

#include <map>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "golden.h"
#include "problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// One of MPoL's training runs on the shared dataset: v0.3, or v0.1 with its Hermitian gridding.
struct Run {
  explicit Run(const std::string& era) : golden("train_" + era) {
    const Golden gridding("gridding");
    const std::string prefix = era == "v01" ? "out_hermitian_" : "out_";
    const auto mask = gridding(prefix + "mask_packed").to(torch::kBool);
    const auto cells = mask.flatten().nonzero().squeeze(1);
    dataset = GriddedDataset(coords, data.number<std::int64_t>("in_nchan"), cells,
                             gridding(prefix + "vis_packed").flatten().index_select(0, cells),
                             gridding(prefix + "weight_packed").flatten().index_select(0, cells));
  }

  TrainResult fit(const GriddedNet& model, TrainOptions options, torch::Dtype dtype) const {
    const Objective objective(GriddedLikelihood(dataset), {terms::sparsity(golden.number("in_lambda_sparsity")),
                                                           terms::tv_image(golden.number("in_lambda_tv"))});
    return Trainer(model, objective, options.dtype(dtype)).fit();
  }
  GriddedNet model(torch::Dtype dtype) const {
    const auto options = GriddedNetOptions(coords).nchan(dataset->nchan()).start(golden.number("in_base_start"));
    return GriddedNet(GriddedNetOptions(options).dtype(dtype));
  }

  Golden data{"dataset"}, golden;
  GridCoords coords{data.number("in_cell_size"), data.number<std::int64_t>("in_npix")};
  GriddedDataset dataset{nullptr};
};

/// Largest relative difference from (epochs, 4): total, nll, and the regularisers without their lambda.
double history_error(const TrainResult& result, const Tensor& expected, double sparsity, double tv) {
  if (static_cast<std::int64_t>(result.history.size()) != expected.size(0)) return std::numeric_limits<double>::infinity();
  double worst = 0;
  const std::array<double, 4> weights = {1.0, 1.0, sparsity, tv};
  for (const auto& loss : result.history) {
    for (std::size_t column = 0; column < 4; ++column) {
      const double reference = expected[loss.epoch][static_cast<std::int64_t>(column)].item<double>() * weights[column];
      worst = std::max(worst, std::abs(loss.values[column] / reference - 1));
    }
  }
  return worst;
}

}  // namespace

TEMPLATE_TEST_CASE("Adam goes MPoL's way", "[train]", float, double) {
  const auto era = GENERATE(std::string("v03"), std::string("v01"));
  INFO(era);
  const Run run(era);
  auto model = run.model(dtype_of<TestType>());
  std::map<std::int64_t, Tensor> bases;
  const auto keep = [&](const Progress& progress) {
    bases[progress.loss.epoch + 1] = progress.model.base().detach().clone();
    return CallbackAction::proceed;
  };
  const auto result = run.fit(model, TrainOptions().learning_rate(run.golden.number("in_adam_lr")).epochs(50).callbacks({keep}),
                              dtype_of<TestType>());
  CHECK(history_error(result, run.golden("out_adam_loss_nll_sparsity_tv"), run.golden.number("in_lambda_sparsity"),
                      run.golden.number("in_lambda_tv")) < tolerance<TestType>(1e-10, 1e-5));
  CHECK(result.loss.total() == Approx(run.golden.number("out_adam_loss_after")).epsilon(tolerance<TestType>(1e-10, 1e-5)));
  if constexpr (std::is_same_v<TestType, double>) {
    CHECK((sky_to_packed(bases.at(1))[0] - run.golden("out_adam_base_1_packed_chan0")).abs().max().template item<double>() <
          1e-7);
    CHECK((sky_to_packed(bases.at(10))[0] - run.golden("out_adam_base_10_packed_chan0")).abs().max().template item<double>() <
          1e-7);
    CHECK((sky_to_packed(bases.at(50)) - run.golden("out_adam_base_50_packed")).abs().max().template item<double>() < 1e-7);
  }
  const auto image = model->make_sky();
  CHECK(relative_error(image, run.golden("out_adam_image_50_sky")) < tolerance<TestType>(1e-9, 1e-4));
  CHECK(image.max().template item<double>() ==
        Approx(run.golden.number("out_adam_image_peak")).epsilon(tolerance<TestType>(1e-9, 1e-4)));
  if constexpr (std::is_same_v<TestType, float>) {  // no further from float64 than MPoL's own float32, but for a factor of 3
    const double error = (image - run.golden("out_adam_image_50_sky")).abs().max().template item<double>();
    CHECK(error < 3 * run.golden.number("out_adam_float32_image_max_abs"));
  }
}

TEMPLATE_TEST_CASE("gradient descent goes MPoL's way", "[train]", float, double) {
  const auto era = GENERATE(std::string("v03"), std::string("v01"));
  INFO(era);
  const Run run(era);
  auto model = run.model(dtype_of<TestType>());
  const auto options = TrainOptions().optimizer(OptimizerKind::sgd).learning_rate(run.golden.number("in_sgd_lr")).epochs(20);
  const auto result = run.fit(model, options, dtype_of<TestType>());
  CHECK(history_error(result, run.golden("out_sgd_loss_nll_sparsity_tv"), run.golden.number("in_lambda_sparsity"),
                      run.golden.number("in_lambda_tv")) < tolerance<TestType>(1e-10, 1e-5));
  CHECK(result.loss.total() == Approx(run.golden.number("out_sgd_loss_after")).epsilon(tolerance<TestType>(1e-10, 1e-5)));
  CHECK(relative_error(sky_to_packed(model->base()), run.golden("out_sgd_base_20_packed")) < tolerance<TestType>(1e-7, 1e-4));
}

namespace {

/// A likelihood as a user may write one: the distance from an image, here instead of chi squared.
class DistanceImpl : public Module<DistanceImpl>, public Likelihood {
 public:
  DistanceImpl(const GridCoords& coords, Tensor image) : Likelihood(coords), image_(std::move(image)) { reset(); }
  void reset() override { register_buffer("image", image_); }
  Tensor chi_squared(const Tensor& sky) override { return (sky - image_).square().sum({-3, -2, -1}).sqrt(); }
  double normalizer() const override { return static_cast<double>(image_.numel()); }

 private:
  Tensor image_;
};
TORCH_MODULE(Distance);

}  // namespace

TEMPLATE_TEST_CASE("training to the dirty image, by a likelihood of one's own, goes MPoL's way", "[train]", float, double) {
  const Golden data("dataset"), golden("train_to_dirty");
  const GridCoords coords(data.number("in_cell_size"), data.number<std::int64_t>("in_npix"));
  const auto dtype = dtype_of<TestType>();
  auto model = GriddedNet(GriddedNetOptions(coords).nchan(data.number<std::int64_t>("in_nchan")).dtype(dtype));
  std::map<std::int64_t, Tensor> bases;
  const auto keep = [&](const Progress& progress) {
    const auto done = progress.loss.epoch + 1;
    if (done == 1 || done == 10 || done == 1000) bases[done] = progress.model.base().detach().clone();
    return CallbackAction::proceed;
  };
  const auto options =
      TrainOptions().optimizer(OptimizerKind::sgd).learning_rate(golden.number("in_lr")).epochs(1000).callbacks({keep});
  const Objective objective(Distance(coords, golden("in_dirty_image_sky").to(dtype)), {}, Normalize::none);
  const auto result = Trainer(model, objective, options).fit();
  const auto bound = tolerance<TestType>(1e-10, 1e-4);
  for (const auto done : {1, 10, 1000}) {
    CHECK(relative_error(sky_to_packed(bases.at(done)), golden("out_base_" + std::to_string(done) + "_packed")) < bound);
  }
  const auto steps = golden("in_steps");
  for (std::int64_t i = 0; i < steps.size(0); ++i) {
    const auto done = steps[i].template item<std::int64_t>();
    const auto& loss = done < result.epochs ? result.history.at(static_cast<std::size_t>(done)) : result.loss;
    CHECK(loss.total() == Approx(golden("out_loss_after")[i].template item<double>()).epsilon(bound));
  }
}
