#include <mpol_cpp/proximal/proximal_map.h>

#include <utility>

#include <ATen/ops/cat.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

Tensor conjugate_proximal(ProximalMap& map, const Tensor& q, const Tensor& step) {
  return q - step * map.apply(q / step, step.reciprocal());
}

StackedProximal::StackedProximal(std::vector<std::shared_ptr<ProximalMap>> maps, std::vector<std::int64_t> channels)
    : maps_(std::move(maps)), channels_(std::move(channels)) {
  if (maps_.empty() || maps_.size() != channels_.size()) {
    throw ValueError(fmt::format("{} proximal maps with {} numbers of channels cannot be stacked: give one for each",
                                 maps_.size(), channels_.size()));
  }
  for (const auto count : channels_) {
    if (count < 1) throw ValueError(fmt::format("a proximal map cannot have {} channels: give 1 or more", count));
  }
}

Tensor StackedProximal::value(const Tensor& x) const {
  const auto parts = x.split_with_sizes(channels_, -3);
  auto sum = maps_[0]->value(parts[0]);
  for (std::size_t i = 1; i < maps_.size(); ++i) sum = sum + maps_[i]->value(parts[i]);
  return sum;
}

Tensor StackedProximal::apply(const Tensor& q, const Tensor& step) {
  const auto parts = q.split_with_sizes(channels_, -3);
  std::vector<Tensor> results;
  results.reserve(maps_.size());
  for (std::size_t i = 0; i < maps_.size(); ++i) results.push_back(maps_[i]->apply(parts[i], step));
  return at::cat(results, -3);
}

NamedTensors StackedProximal::state() const {
  NamedTensors state;
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    for (auto& [name, tensor] : maps_[i]->state()) state[fmt::format("{}.{}", i, name)] = tensor;
  }
  return state;
}

void StackedProximal::load_state(const NamedTensors& state) {
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    const auto prefix = fmt::format("{}.", i);
    NamedTensors own;
    for (const auto& [name, tensor] : state) {
      if (name.rfind(prefix, 0) == 0) own[name.substr(prefix.size())] = tensor;
    }
    maps_[i]->load_state(own);
  }
}

Tensor UserProximal::apply(const Tensor& q, const Tensor& step) {
  auto x = denoiser_(q, step);
  if (x.sizes() != q.sizes() || x.scalar_type() != q.scalar_type()) {
    throw ShapeError(fmt::format("the denoiser made {} of {} from {} of {}: it must keep both", x.sizes().vec(),
                                 c10::toString(x.scalar_type()), q.sizes().vec(), c10::toString(q.scalar_type())));
  }
  return x;
}

}  // namespace mpol
