#pragma once

// What the kernels of the fused step are told, on the CPU and on a GPU. C++17 without LibTorch.
#include <mpol_cpp/regularizers/list.h>

namespace mpol::ops {

/// Weights (lambda) of the regularizers, 0 for those that are not there, and their settings.
struct FusedTerms {
  double weights[regularizer_count] = {};
  RegularizerSettings values = RegularizerSettings::usual();

  MPOL_FORMULA double weight(TermKind kind) const { return weights[static_cast<int>(kind)]; }
  MPOL_FORMULA double& weight(TermKind kind) { return weights[static_cast<int>(kind)]; }
  MPOL_FORMULA const double* settings(TermKind kind) const { return values.of[static_cast<int>(kind)]; }
  MPOL_FORMULA double* settings(TermKind kind) { return values.of[static_cast<int>(kind)]; }
};

/// Adam's, in each of its forms: that of LibTorch.
inline constexpr double adam_epsilon = 1e-8;

/// What becomes of the gradient.
enum class FusedUpdate {
  none,  ///< it is written to `gradient`
  sgd,   ///< first = momentum * first + gradient, base -= rate * first
  adam,  ///< first and second moments, base -= rate * first / (sqrt(second) * second_scale + epsilon)
};

}  // namespace mpol::ops
