// Fits by proximal gradients on a GPU against those on the CPU. Run by hand or by scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/trainer.h>

#include "compare.h"
#include "required_gpu.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

struct Optimum {
  double loss;
  StopReason stop_reason;
  Tensor image;
};

Optimum fit_by(OptimizerKind optimizer, torch::Device device, torch::Dtype dtype, const std::vector<Term>& terms) {
  const GridCoords coords(0.05, 64);
  auto model = GriddedNet(GriddedNetOptions(coords)
                              .base_cube(torch::full({2, 64, 64}, 1e-3, torch::kFloat64))
                              .pixel_mapping(nonnegative_mapping())
                              .dtype(dtype));
  const auto options = TrainOptions().device(device).dtype(dtype).optimizer(optimizer).tolerance(1e-5).epochs(3000);
  const auto result = Trainer(model, Objective(random_likelihood("gridded", coords, 2, dtype), terms), options).fit();
  return {result.loss.total(), result.stop_reason, model->make_sky().detach().cpu().to(torch::kFloat64)};
}

}  // namespace

TEMPLATE_TEST_CASE("a fit by proximal gradients on a GPU ends at the CPU's optimum", "[gpu][solvers]", float, double) {
  const auto device = required_gpu();
  const auto optimizer = GENERATE(OptimizerKind::pogm, OptimizerKind::fista);
  const std::vector<std::vector<Term>> all = {{terms::sparsity(1e-3), terms::tv_image(1e-3)},
                                              {terms::sparsity(1e-3), terms::tv_image(1e-3), terms::tv_channel(1e-3)}};
  for (const auto& terms : all) {
    CAPTURE(to_string(optimizer), terms.size());
    const auto here = fit_by(optimizer, torch::kCPU, dtype_of<TestType>(), terms),
               there = fit_by(optimizer, device, dtype_of<TestType>(), terms);
    CHECK(here.stop_reason == StopReason::converged);
    CHECK(there.stop_reason == StopReason::converged);
    CHECK(there.loss == Approx(here.loss).epsilon(1e-5));
    CHECK(relative_error(there.image, here.image) < 1e-2);
  }
}
