#pragma once

#include <torch/types.h>

namespace mpol {

/// In what numbers a fit is computed: images, visibilities and gradients in one dtype, sums over pixels, cells, visibilities
/// and problems in another, which is float64 whatever the first.
struct Precision {
  torch::Dtype real = torch::kFloat32;        ///< float32 or float64
  torch::Dtype accumulate = torch::kFloat64;  ///< float64

  /// The dtype of visibilities and Fourier planes.
  torch::Dtype complex() const { return c10::toComplexType(real); }
  /// @throws ValueError unless both are as above
  void validate() const;
};

/// Asks LibTorch for operations that give the same bits each time on the same device, and for an error where there is none
/// (`torch.use_deterministic_algorithms`). Kernels of this library always do. What stays different: other devices, instruction
/// sets and builds; and with LibTorch's own sums, which the eager step takes, other numbers of threads.
/// For matrix products on a GPU it must be called before the first of them.
void set_deterministic(bool deterministic);
bool is_deterministic();  ///< whether LibTorch is asked for them, by set_deterministic() or otherwise

}  // namespace mpol
