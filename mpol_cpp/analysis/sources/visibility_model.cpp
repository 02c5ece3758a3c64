#include <mpol_cpp/analysis/sources/visibility_model.h>

#include <mpol_cpp/core/error.h>

namespace mpol {

torch::nn::Module& VisibilityModel::as_module() {
  auto* module = dynamic_cast<torch::nn::Module*>(this);
  if (module == nullptr)
    throw ValueError("a model of visibilities that is no module: derive its class from mpol::Module, or override as_module");
  return *module;
}

torch::Device VisibilityModel::device() {
  const auto parameters = as_module().parameters();
  return parameters.empty() ? torch::Device(torch::kCPU) : parameters.front().device();
}

Tensor VisibilityModel::loose(const Baselines& baselines) {
  const auto [u, v] = baselines.stacked();
  return visibilities(u.to(device()), v.to(device()));
}

Tensor VisibilityModel::packed(const GridCoords& coords) {
  return visibilities(coords.packed_u().to(device()), coords.packed_v().to(device())).unsqueeze(0);
}

Tensor sum_of_visibilities(const std::vector<std::shared_ptr<VisibilityModel>>& parts, const Tensor& u, const Tensor& v) {
  if (parts.empty()) throw ValueError("0 parts of the sky: give at least 1");
  auto sum = parts.front()->visibilities(u, v);
  for (std::size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i]->visibilities(u, v);
  return sum;
}

}  // namespace mpol
