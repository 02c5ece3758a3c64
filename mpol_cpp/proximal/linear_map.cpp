#include <mpol_cpp/proximal/linear_map.h>

#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/roll.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

StackedMap::StackedMap(std::vector<std::shared_ptr<const LinearMap>> maps, std::vector<std::int64_t> channels)
    : maps_(std::move(maps)), channels_(std::move(channels)) {
  if (maps_.empty() || maps_.size() != channels_.size()) {
    throw ValueError(
        fmt::format("{} maps with {} numbers of channels cannot be stacked: give one for each", maps_.size(), channels_.size()));
  }
  for (const auto count : channels_) {
    if (count < 1) throw ValueError(fmt::format("a stacked map cannot have {} channels: give what it makes, 1 or more", count));
  }
}

Tensor StackedMap::apply(const Tensor& x) const {
  std::vector<Tensor> parts;
  parts.reserve(maps_.size());
  for (const auto& map : maps_) parts.push_back(map->apply(x));
  return at::cat(parts, -3);
}

Tensor StackedMap::adjoint(const Tensor& y) const {
  const auto parts = y.split_with_sizes(channels_, -3);
  auto sum = maps_[0]->adjoint(parts[0]);
  for (std::size_t i = 1; i < maps_.size(); ++i) sum = sum + maps_[i]->adjoint(parts[i]);
  return sum;
}

Tensor ImageDifferences::apply(const Tensor& x) const {
  if (boundary_ == Boundary::periodic) return at::cat({x - at::roll(x, {1}, {-2}), x - at::roll(x, {1}, {-1})}, -3);
  const auto rows = x.size(-2), columns = x.size(-1);
  const auto down = at::constant_pad_nd(x.narrow(-2, 1, rows - 1) - x.narrow(-2, 0, rows - 1), {0, 0, 0, 1});
  const auto along = at::constant_pad_nd(x.narrow(-1, 1, columns - 1) - x.narrow(-1, 0, columns - 1), {0, 1});
  return at::cat({down, along}, -3);
}

Tensor ImageDifferences::adjoint(const Tensor& y) const {
  const auto channels = y.size(-3) / 2, rows = y.size(-2), columns = y.size(-1);
  const auto down = y.narrow(-3, 0, channels), along = y.narrow(-3, channels, channels);
  if (boundary_ == Boundary::periodic) return down - at::roll(down, {-1}, {-2}) + along - at::roll(along, {-1}, {-1});
  const auto inner_down = down.narrow(-2, 0, rows - 1), inner_along = along.narrow(-1, 0, columns - 1);
  auto x = at::constant_pad_nd(inner_down, {0, 0, 1, 0});
  x.narrow(-2, 0, rows - 1).sub_(inner_down);
  x.narrow(-1, 1, columns - 1).add_(inner_along);
  x.narrow(-1, 0, columns - 1).sub_(inner_along);
  return x;
}

Tensor squared_norm(const LinearMap& map, const Tensor& like, const PowerOptions& options) {
  if (options.most_iterations < 1 || !(options.tolerance > 0) || !(options.margin >= 1)) {
    throw ValueError(fmt::format("power steps: {} iterations, tolerance {}, margin {}: they must be >= 1, > 0 and >= 1",
                                 options.most_iterations, options.tolerance, options.margin));
  }
  const torch::NoGradGuard no_grad;
  // Something without symmetry, which is orthogonal to no eigenvector of maps as they occur.
  auto x = (at::arange(like[0].numel() * like.size(0), torch::TensorOptions(torch::kFloat64).device(like.device())).square() *
                0.7390851 +
            0.3)
               .sin();
  x = x.to(like.scalar_type()).view(like.sizes()) + 0.1;
  Tensor last;
  for (std::int64_t k = 0; k < options.most_iterations; ++k) {
    x = x / as_factor(problem_norms(x).clamp_min(1e-300), x).clamp_min(1e-30);
    x = map.adjoint(map.apply(x));
    auto value = problem_norms(x);
    if (last.defined() && ((value - last).abs() <= options.tolerance * value).all().item<bool>()) {
      last = value;
      break;
    }
    last = value;
  }
  return last * options.margin;
}

}  // namespace mpol
