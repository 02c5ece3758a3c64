#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/ops/fused/fused_settings.h>
#include <mpol_cpp/train/options/train_options.h>

/// What the fused steps, on the CPU and on a GPU, have to know of a model and an objective.
namespace mpol::detail {

/// The name under which the base pixels are saved.
inline constexpr const char* base_cube_name = "model.bcube.base_cube";

/// Whether its base pixels are on a CUDA device.
inline bool is_on_gpu(const ImageModel& model) { return model.base().defined() && model.base().is_cuda(); }

/// Why no fused step applies on any device; empty where one does.
std::string obstacle_to_fusing(ImageModel& model, const Objective& objective);

/// What a fused step works out for an objective at base pixels like those of a model, for which obstacle_to_fusing() is empty.
/// Each problem has its scale of chi^2, 1 / (2 N_norm), and its weights.
/// @throws ValueError for a term that is no regularizer, or weights of the half plane that overflow in the dtype of the fit
ops::FusedSettings fused_settings(const ImageModel& model, const Objective& objective);

/// The scale of a problem's chi^2, 1 / (2 N_norm). @param normalizers  of Objective::normalizers(): one, or one for each problem
inline double chi_squared_scale(const std::vector<double>& normalizers, std::size_t problem) {
  return 1.0 / (2.0 * (normalizers.size() == 1 ? normalizers.front() : normalizers[problem]));
}

/// The data that a fused step looks at by itself: those that all problems share, or those of each problem. Empty where the
/// likelihood, or one of a problem, has none, and is given images instead.
std::vector<CellData> cells_of(const Likelihood& likelihood);

/// What becomes of the gradient within the last pass: nothing where an optimizer takes it from there.
ops::FusedUpdate fused_update(OptimizerKind kind);

}  // namespace mpol::detail
