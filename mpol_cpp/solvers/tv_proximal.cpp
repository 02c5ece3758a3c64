#include <mpol_cpp/solvers/tv_proximal.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/proximal/tv_dual.h>
#include <mpol_cpp/ops/proximal/dual_ascent.h>
#include <mpol_cpp/ops/proximal/gpu/gpu_tv_dual.h>
#include <mpol_cpp/ops/proximal/image_differences.h>

namespace mpol {

TvProximal::TvProximal(const Tensor& like, bool hann, Tensor mask, By by) : hann_(hann), mask_(std::move(mask)) {
  const auto n = like.size(-1);
  if (mask_.defined()) mask_ = mask_.to(like.options()).expand(like.sizes()).contiguous();
  if (by == By::kernels && like.is_cpu()) {
    if (like.scalar_type() == torch::kFloat32) {
      single_ = std::make_shared<ops::TvDual<float>>(like.size(0), like.size(1), n, hann);
    } else {
      double_ = std::make_shared<ops::TvDual<double>>(like.size(0), like.size(1), n, hann);
    }
    return;
  }
  if (by == By::gpu_kernels || (by == By::kernels && like.is_cuda())) {
    on_gpu_ = std::make_shared<ops::GpuTvDual>(like, hann);
    return;
  }
  dual_ = at::zeros({2, like.size(0), like.size(1), n, n}, like.options());
  inside_ = ops::counted_block(like);
}

Tensor TvProximal::dual() const {
  if (single_) return single_->dual();
  if (on_gpu_) return on_gpu_->dual().clone();
  return double_ ? double_->dual() : dual_.clone();
}

Tensor TvProximal::slope() const { return smoothed(ops::adjoint_differences(dual())); }

void TvProximal::set_dual(const Tensor& dual) {
  const auto own = this->dual();
  if (dual.sizes() != own.sizes() || dual.scalar_type() != own.scalar_type()) {
    throw FileError(fmt::format("the dual image has shape {}; it must be {} of {}", dual.sizes().vec(), own.sizes().vec(),
                                c10::toString(own.scalar_type())));
  }
  if (single_) single_->set_dual(dual.to(torch::kCPU));
  else if (double_) double_->set_dual(dual.to(torch::kCPU));
  else (on_gpu_ ? on_gpu_->dual() : dual_).copy_(dual);
}

Tensor TvProximal::smoothed(const Tensor& images) const { return hann_ ? ops::hann(images) : images; }

Tensor TvProximal::primal(const Tensor& q, const Tensor& weights, const Tensor& thresholds, const Tensor& dual) const {
  auto x = q;
  if (dual.defined()) x = q - smoothed(ops::adjoint_differences(dual)) * weights;
  x = ops::cut_pixels(x, thresholds);
  return mask_.defined() ? x * mask_ : x;
}

void TvProximal::apply(const Tensor& q, const std::vector<double>& weights, const std::vector<std::int64_t>& passes, Tensor& x,
                       const std::vector<double>& thresholds) {
  if (single_ || double_) {
    const auto run = [&](auto& kernels, auto type) {
      using T = decltype(type);
      kernels.apply(q.const_data_ptr<T>(), mask_.defined() ? mask_.const_data_ptr<T>() : nullptr, weights, thresholds, passes,
                    x.mutable_data_ptr<T>());
    };
    if (single_) run(*single_, 0.0F);
    else run(*double_, 0.0);
    return;
  }
  const auto there = [&](const std::vector<double>& of_images) {
    return of_images.empty() ? Tensor() : at::tensor(of_images, torch::kFloat64).to(q.device()).view({q.size(0), -1, 1, 1});
  };
  const auto own_thresholds = there(thresholds);
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0; })) {
    x.copy_(primal(q, {}, own_thresholds, {}));
    return;
  }
  const auto on_device = there(weights);
  if (on_gpu_) {
    const auto counts = at::tensor(passes, torch::kInt64).to(q.device());
    return apply(q, on_device, ops::DevicePasses{counts, *std::max_element(passes.begin(), passes.end())}, x, own_thresholds);
  }
  ascend(q, on_device, own_thresholds, ops::DualAscent(dual_, passes), x);
}

void TvProximal::apply(const Tensor& q, const Tensor& weights, const ops::DevicePasses& passes, Tensor& x,
                       const Tensor& thresholds) {
  if (on_gpu_) {
    const auto own_thresholds = thresholds.defined() ? thresholds.contiguous() : thresholds;
    return on_gpu_->apply(q.contiguous(), mask_, weights.contiguous(), passes, x, own_thresholds);
  }
  if (!dual_.defined()) throw ValueError("kernels of the CPU compute this map: give it numbers of the host");
  ascend(q, weights, thresholds, ops::DualAscent(dual_, passes), x);
}

void TvProximal::ascend(const Tensor& q, const Tensor& weights, const Tensor& thresholds, ops::DualAscent ascent, Tensor& x) {
  const auto weight = weights.to(q.scalar_type());
  const auto step = at::where(weights > 0, 1 / (8 * weights), 0.0).to(q.scalar_type());
  for (std::int64_t pass = 0; pass < ascent.most_passes(); ++pass) {
    const auto& v = ascent.ahead();
    auto next = v + ops::differences(smoothed(primal(q, weight, thresholds, v)), inside_) * step;
    next = next / next.square().sum(0).sqrt().clamp_min(1);
    const auto change = next - ascent.dual();
    ascent.move_to(next, ((v - next) * change).sum({-3, -2, -1}, /*keepdim=*/true, torch::kFloat64).sum(0) > 0);
  }
  x.copy_(primal(q, weight, thresholds, ascent.dual()));
  dual_.copy_(ascent.dual());
}

}  // namespace mpol
