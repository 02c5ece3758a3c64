#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>

namespace mpol {

/// What a fit trains, by name: the model's parameters as "model.NAME" and the likelihood's, if it has any, as
/// "likelihood.NAME"; those that require a gradient.
struct NamedParameter {
  std::string name;
  Tensor tensor;
};
std::vector<NamedParameter> trained_parameters(ImageModel& model, const Objective& objective);

}  // namespace mpol
