#include <mpol_cpp/ops/proximal/dual_ascent.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/ops/proximal/image_differences.h>

namespace mpol::ops {

DualAscent::DualAscent(const Tensor& dual, std::vector<std::int64_t> passes)
    : passes_(std::move(passes)),
      p_(dual),
      v_(dual),
      t_(at::ones({dual.size(1), 1, 1, 1}, torch::TensorOptions(dual.device()).dtype(torch::kFloat64))) {}

std::int64_t DualAscent::most_passes() const { return *std::max_element(passes_.begin(), passes_.end()); }

void DualAscent::move_to(const Tensor& next, const Tensor& turned) {
  const auto next_t = at::where(turned, at::full({}, 1.0, t_.options()), (1 + (1 + 4 * t_.square()).sqrt()) / 2);
  const auto momentum = at::where(turned, at::full({}, 0.0, t_.options()), (t_ - 1) / next_t).to(p_.scalar_type());
  const auto next_v = next + (next - p_) * momentum;
  const auto pass = done_++;
  if (std::all_of(passes_.begin(), passes_.end(), [=](std::int64_t own) { return own > pass; })) {
    p_ = next, v_ = next_v, t_ = next_t;
    return;
  }
  std::vector<double> goes_on(passes_.size());
  for (std::size_t i = 0; i < passes_.size(); ++i) goes_on[i] = passes_[i] > pass ? 1 : 0;
  const auto on = spread(goes_on, p_[0]) > 0;
  p_ = at::where(on, next, p_);
  v_ = at::where(on, next_v, v_);
  t_ = at::where(on, next_t, t_);
}

}  // namespace mpol::ops
