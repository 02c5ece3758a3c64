#include <mpol_cpp/analysis/sources/visibility_model.h>

#include <cstdint>

#include <ATen/ops/stack.h>

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
  const auto [u, v] = stacked_baselines(baselines);
  return visibilities(u.to(device()), v.to(device()));
}

Tensor VisibilityModel::packed(const GridCoords& coords) {
  return visibilities(coords.packed_u().to(device()), coords.packed_v().to(device())).unsqueeze(0);
}

std::pair<Tensor, Tensor> stacked_baselines(const Baselines& baselines) {
  std::vector<Tensor> u, v;
  const auto count = baselines.shared() ? 1 : baselines.nchan();
  u.reserve(static_cast<std::size_t>(count));
  v.reserve(static_cast<std::size_t>(count));
  for (std::int64_t channel = 0; channel < count; ++channel) {
    const auto [columns, rows] = baselines.channel(channel);
    u.push_back(columns);
    v.push_back(rows);
  }
  return {at::stack(u), at::stack(v)};
}

Tensor sum_of_visibilities(const std::vector<std::shared_ptr<VisibilityModel>>& parts, const Tensor& u, const Tensor& v) {
  if (parts.empty()) throw ValueError("0 parts of the sky: give at least 1");
  auto sum = parts.front()->visibilities(u, v);
  for (std::size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i]->visibilities(u, v);
  return sum;
}

}  // namespace mpol
