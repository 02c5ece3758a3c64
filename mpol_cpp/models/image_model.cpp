#include <mpol_cpp/models/image_model.h>

#include <mpol_cpp/core/error.h>

namespace mpol {

torch::nn::Module& ImageModel::as_module() {
  auto* module = dynamic_cast<torch::nn::Module*>(this);
  if (module == nullptr) throw ValueError("an image model is not a module: derive its class from mpol::Module<its class> too");
  return *module;
}

std::map<std::string, std::string> ImageModel::state_labels() const {
  auto labels = grid_labels(coords_);
  labels["axes"] = to_string(axes());
  return labels;
}

}  // namespace mpol
