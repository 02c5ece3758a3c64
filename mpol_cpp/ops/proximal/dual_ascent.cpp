#include <mpol_cpp/ops/proximal/dual_ascent.h>

#include <algorithm>

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

namespace mpol::ops {

DualAscent::DualAscent(const Tensor& dual, const std::vector<std::int64_t>& passes)
    : DualAscent(dual, DevicePasses{{}, *std::max_element(passes.begin(), passes.end())}) {
  if (std::all_of(passes.begin(), passes.end(), [this](std::int64_t own) { return own == most_; })) return;
  passes_ = at::tensor(passes, torch::kInt64).to(dual.device()).view({-1, 1, 1, 1});
}

DualAscent::DualAscent(const Tensor& dual, const DevicePasses& passes)
    : passes_(passes.counts.defined() ? passes.counts.view({-1, 1, 1, 1}) : Tensor()),
      most_(passes.most),
      p_(dual),
      v_(dual),
      t_(at::ones({dual.size(1), 1, 1, 1}, torch::TensorOptions(dual.device()).dtype(torch::kFloat64))) {}

void DualAscent::move_to(const Tensor& next, const Tensor& turned) {
  const auto next_t = at::where(turned, 1.0, (1 + (1 + 4 * t_.square()).sqrt()) / 2);
  const auto momentum = at::where(turned, 0.0, (t_ - 1) / next_t).to(p_.scalar_type());
  const auto next_v = next + (next - p_) * momentum;
  const auto pass = done_++;
  if (!passes_.defined()) {
    p_ = next, v_ = next_v, t_ = next_t;
    return;
  }
  const auto on = passes_ > pass;
  p_ = at::where(on, next, p_);
  v_ = at::where(on, next_v, v_);
  t_ = at::where(on, next_t, t_);
}

}  // namespace mpol::ops
