#include <mpol_cpp/ops/gpu/line_roots.h>

#include <numbers>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>

namespace mpol::ops {

at::Tensor line_roots(std::int64_t length) {
  const auto angle = at::arange(length, torch::kFloat64) * (-2.0 * std::numbers::pi / static_cast<double>(length));
  return at::polar(at::ones_like(angle), angle);
}

}  // namespace mpol::ops
