#include <mpol_cpp/proximal/problem_values.h>

#include <functional>
#include <numeric>

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

std::vector<std::int64_t> problem_shape(const Tensor& x, std::int64_t problem_dims) {
  if (x.dim() < problem_dims || !x.is_floating_point()) {
    throw ShapeError(
        fmt::format("a tensor {} of {} is no problem of {} dimensions: it needs that many, and a real floating dtype",
                    x.sizes().vec(), c10::toString(x.scalar_type()), problem_dims));
  }
  const auto sizes = x.sizes();
  return {sizes.begin(), sizes.end() - problem_dims};
}

std::vector<std::int64_t> last_dimensions(std::int64_t problem_dims) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(problem_dims));
  std::iota(dims.begin(), dims.end(), -problem_dims);
  return dims;
}

}  // namespace

Tensor problem_sums(const Tensor& x, std::int64_t problem_dims) {
  problem_shape(x, problem_dims);
  return x.sum(last_dimensions(problem_dims), /*keepdim=*/false, torch::kFloat64);
}

Tensor problem_norms(const Tensor& x, std::int64_t problem_dims) { return problem_sums(x.square(), problem_dims).sqrt(); }

Tensor as_factor(const Tensor& values, const Tensor& x, std::int64_t problem_dims) {
  auto shape = problem_shape(x, problem_dims);
  if (values.dim() == 0) return values.to(x.device(), x.scalar_type());
  if (values.sizes() != c10::IntArrayRef(shape)) {
    throw ShapeError(
        fmt::format("there are values {} for problems {}: give one for each, or one for all", values.sizes().vec(), shape));
  }
  shape.resize(shape.size() + static_cast<std::size_t>(problem_dims), 1);
  return values.to(x.device(), x.scalar_type()).view(shape);
}

Tensor as_factor(const std::vector<double>& values, const Tensor& x, std::int64_t problem_dims) {
  // A scalar on the CPU goes with tensors of any device, and nobody waits for it.
  if (values.size() == 1) return at::scalar_tensor(values[0], torch::TensorOptions(x.scalar_type()));
  return as_factor(at::tensor(values, torch::kFloat64).view(problem_shape(x, problem_dims)), x, problem_dims);
}

Tensor shortening(const Tensor& lengths, const Tensor& threshold) {
  return at::where(lengths > threshold, 1 - threshold / lengths, at::scalar_tensor(0, lengths.options()));
}

std::vector<double> on_host(const Tensor& values) {
  const auto own = values.to(torch::kCPU, torch::kFloat64).contiguous();
  return {own.const_data_ptr<double>(), own.const_data_ptr<double>() + own.numel()};
}

std::int64_t problem_count(const Tensor& x, std::int64_t problem_dims) {
  const auto shape = problem_shape(x, problem_dims);
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace mpol
