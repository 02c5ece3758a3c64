#include <mpol_cpp/device/precision.h>

#include <cstdlib>

#include <ATen/Context.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

void Precision::validate() const {
  if (real != torch::kFloat32 && real != torch::kFloat64) {
    throw ValueError(fmt::format("real numbers are {}; choose torch::kFloat32 or torch::kFloat64", c10::toString(real)));
  }
  if (accumulate != torch::kFloat64) {
    throw ValueError(fmt::format("sums are to be taken in {}; they are always taken in float64: leave torch::kFloat64",
                                 c10::toString(accumulate)));
  }
}

void set_deterministic(bool deterministic) {
  // cuBLAS is deterministic with a workspace of fixed size alone, which it takes from here.
  if (deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  at::globalContext().setDeterministicAlgorithms(deterministic, /*warn_only=*/false);
  at::globalContext().setBenchmarkCuDNN(false);
}

bool is_deterministic() { return at::globalContext().deterministicAlgorithms(); }

}  // namespace mpol
