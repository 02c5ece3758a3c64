#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/ops/fused/cpu/fused_kernels.h>
#include <mpol_cpp/objective/objective.h>

/// What the fused steps, on the CPU and on a GPU, have to know of a model and an objective.
namespace mpol::detail {

/// The name under which the base pixels are saved.
inline constexpr const char* base_cube_name = "model.bcube.base_cube";

/// Why no fused step applies on any device; empty where one does.
std::string obstacle_to_fusing(ImageModel& model, const Objective& objective);

/// Weights of one problem and settings of the regularisers. @throws ValueError for a term that is not one of them
ops::FusedTerms weights_of_terms(const std::vector<Term>& terms, std::size_t problem);

/// The weights of cells of the regularizer of the half plane, (npix, npix/2 + 1) float64; they are the same at -kv. Undefined
/// where there is none, or has no weight. @throws ValueError where they overflow in the dtype of the fit
Tensor inverse_power_of_terms(const std::vector<Term>& terms, const GridCoords& coords, torch::Dtype dtype);

}  // namespace mpol::detail
