#include <mpol_cpp/solvers/cube_proximal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/proximal/cube_dual.h>
#include <mpol_cpp/ops/proximal/dual_ascent.h>
#include <mpol_cpp/ops/proximal/gpu/gpu_cube_dual.h>
#include <mpol_cpp/ops/proximal/image_differences.h>
#include <mpol_cpp/ops/wavelet/sara_bases.h>

namespace mpol {
namespace {

/// Factors of one plane of duals: what S x or its differences are multiplied with, and the weight in the sum that tells turning.
struct Climb {
  Tensor factor, weight;
};

/// @param steps  s of each image, or of each pair of channels, float64
Climb climb_of(double weight, double of_unit, const Tensor& steps) {
  if (weight <= 0) return {at::zeros_like(steps), at::zeros_like(steps)};
  return {of_unit / steps, steps * (weight / of_unit)};
}

Tensor on_each(const std::vector<Climb>& climbs, Tensor Climb::*part) {
  std::vector<Tensor> all;
  all.reserve(climbs.size());
  for (const auto& climb : climbs) all.push_back((climb.*part).unsqueeze(0));
  return at::cat(all);
}

/// Images (problems, nchan, npix, npix) as a problem each.
Tensor each_alone(const Tensor& images) { return images.reshape({-1, 1, images.size(-2), images.size(-1)}); }

/// Whether weights are of the images of problems. @throws ValueError where they are, and something joins channels
bool are_of_images(const CubeWeights& weights, const Tensor& like, bool has_neighbors) {
  const auto problems = like.size(0), images = problems * like.size(1), count = std::ssize(weights.variation);
  if (count == problems) return false;
  if (count != images)
    throw ValueError(fmt::format("there are weights for {} of {} images in {} problems", count, images, problems));
  if (has_neighbors || weights.has_channels() || weights.has_spectra())
    throw ValueError("images have weights of their own, and others join channels: give each problem one");
  return true;
}

}  // namespace

CubeProximal::CubeProximal(const Tensor& like, bool hann, Tensor mask, Weights weights, By by,
                           std::shared_ptr<ChannelNeighbors> neighbors)
    : weights_(std::move(weights)), hann_(hann), mask_(std::move(mask)), nchan_(like.size(1)), neighbors_(std::move(neighbors)) {
  if (mask_.defined()) mask_ = mask_.to(like.options()).expand(like.sizes()).contiguous();
  if (are_of_images(weights_, like, neighbors_ != nullptr)) {
    const auto mask_of_images = mask_.defined() ? each_alone(mask_) : Tensor();
    apart_ = std::make_shared<CubeProximal>(each_alone(like), hann, mask_of_images, std::move(weights_), by);
    return;
  }
  if (nchan_ == 1 && !neighbors_) std::fill(weights_.channels.begin(), weights_.channels.end(), 0.0);  // there are no differences
  weights_.curvature.resize(weights_.variation.size(), 0.0);
  counted_ = ops::counted_block(like);
  if (weights_.has_curvature()) curved_ = ops::curved_block(like);
  const auto problems = like.size(0), n = like.size(-1);
  problem_weights_.double_variation = at::tensor(weights_.variation, torch::kFloat64).to(like.device()).view({problems, 1, 1, 1});
  problem_weights_.variation = ops::spread(weights_.variation, like);
  if (weights_.has_channels()) problem_weights_.channels = ops::spread(weights_.channels, like);
  if (weights_.has_spectra()) problem_weights_.spectra = ops::spread(weights_.spectra, like);
  if (weights_.has_curvature()) problem_weights_.curvature = ops::spread(weights_.curvature, like);
  if (weights_.has_bases()) problem_weights_.bases = ops::spread(weights_.bases, like);
  if (weights_.either_sign())
    problem_weights_.magnitude = at::tensor(weights_.magnitude, torch::kFloat64).to(like.device()).view({problems, 1, 1, 1});
  if (!weights_.has_channels() && !weights_.has_spectra() && !weights_.has_curvature() && !weights_.has_bases()) {
    variation_.emplace(like, hann, mask_, by);
  } else if (!neighbors_ && !weights_.has_bases() && (by == By::gpu_kernels || (by == By::kernels && like.is_cuda()))) {
    on_gpu_ = std::make_shared<ops::GpuCubeDual>(like, hann, weights_);
  } else if (by != By::kernels || !like.is_cpu() || weights_.has_bases()) {
    const std::int64_t planes = plane_of_bases() + (weights_.has_bases() ? ops::SaraBases::count : 0);
    dual_ = at::zeros({planes, problems, nchan_, n, n}, like.options());
  } else if (like.scalar_type() == torch::kFloat32) {
    single_ = std::make_shared<ops::CubeDual<float>>(problems, nchan_, n, hann, weights_, neighbors_);
  } else {
    double_ = std::make_shared<ops::CubeDual<double>>(problems, nchan_, n, hann, weights_, neighbors_);
  }
}

Tensor CubeProximal::dual() const {
  if (apart_) {
    const auto own = apart_->dual();
    return own.view({own.size(0), -1, nchan_, own.size(-2), own.size(-1)});
  }
  if (variation_) return variation_->dual();
  if (single_) return single_->dual();
  if (on_gpu_) return on_gpu_->dual().clone();
  return double_ ? double_->dual() : dual_.clone();
}

void CubeProximal::set_dual(const Tensor& dual) {
  if (apart_) return apart_->set_dual(dual.reshape({dual.size(0), -1, 1, dual.size(-2), dual.size(-1)}));
  if (variation_) return variation_->set_dual(dual);
  const auto own = this->dual();
  if (dual.sizes() != own.sizes() || dual.scalar_type() != own.scalar_type()) {
    throw FileError(fmt::format("the dual images have shape {}; it must be {} of {}", dual.sizes().vec(), own.sizes().vec(),
                                c10::toString(own.scalar_type())));
  }
  if (single_) single_->set_dual(dual.to(torch::kCPU));
  else if (double_) double_->set_dual(dual.to(torch::kCPU));
  else (on_gpu_ ? on_gpu_->dual() : dual_).copy_(dual);
}

Tensor CubeProximal::seen(const Tensor& images) const { return hann_ ? ops::hann(images) : images; }

Tensor CubeProximal::adjoint_between(const Tensor& dual) const {
  auto slope = ops::adjoint_channel_differences(dual);
  if (!neighbors_) return slope;
  const auto last = dual.select(-3, nchan_ - 1);
  const auto before = neighbors_->exchange(at::empty({0}, dual.options()), last).before;
  if (before.defined()) slope.select(-3, 0).add_(before);
  return slope;
}

Tensor CubeProximal::between(const Tensor& images) const {
  auto differences = ops::channel_differences(images);
  if (!neighbors_) return differences;
  const auto after = neighbors_->exchange(images.select(-3, 0), at::empty({0}, images.options())).after;
  if (after.defined()) differences.select(-3, nchan_ - 1).copy_(after - images.select(-3, nchan_ - 1));
  return differences;
}

Tensor CubeProximal::squares_of_spectra(const Tensor& images) const {
  auto sums = images.square().sum({-3}, /*keepdim=*/true);
  if (neighbors_) neighbors_->sum(sums);
  return sums;
}

Tensor CubeProximal::unsmoothed_slope(const Tensor& dual) const {
  auto slope = ops::adjoint_differences(dual) * problem_weights_.variation;
  if (weights_.has_channels()) {
    slope = slope + adjoint_between(dual[2]) * problem_weights_.channels;
  }
  if (weights_.has_spectra()) slope = slope + dual[plane_of_spectra()] * problem_weights_.spectra;
  if (weights_.has_curvature()) {
    const auto bent = ops::adjoint_second_differences(dual.narrow(0, plane_of_curvature(), 3));
    slope = slope + bent * problem_weights_.curvature;
  }
  if (weights_.has_bases()) {
    const auto of_bases = dual.narrow(0, plane_of_bases(), ops::SaraBases::count);
    slope = slope + ops::SaraBases(dual.size(-1)).synthesize(of_bases) * problem_weights_.bases;
  }
  return slope;
}

Tensor CubeProximal::slope() const {
  if (apart_) {
    const auto own = apart_->slope();
    return own.view({-1, nchan_, own.size(-2), own.size(-1)});
  }
  if (variation_) return variation_->slope() * ops::spread(weights_.variation, counted_.expand_as(variation_->dual()[0]));
  return seen(unsmoothed_slope(dual()));
}

Tensor CubeProximal::smoothing(const std::vector<double>& epsilons, const Tensor& t) const {
  if (apart_) return apart_->smoothing(epsilons, of_each_image(t)).view({-1, nchan_}).sum(1);
  const auto own = dual();
  const auto n = own.size(-1), problems = own.size(1);
  const auto squared = t.square().to(own.scalar_type()).view({problems, 1, 1, 1});
  const auto sum = [&](const Tensor& squares, const std::vector<double>& weights, double epsilon) {
    const auto lengths = (1 - squares * squared).clamp_min(0).sqrt().sum({-3, -2, -1}, /*keepdim=*/false, torch::kFloat64);
    return lengths * at::tensor(weights, torch::kFloat64).to(lengths.device()) * std::sqrt(epsilon);
  };
  const auto block = own.narrow(0, 0, 2).square().sum(0).narrow(-2, 0, n - 1).narrow(-1, 0, n - 1);
  auto total = sum(block, weights_.variation, epsilons[0]);
  if (weights_.has_channels()) {
    const auto pairs = neighbors_ && neighbors_->has_after() ? nchan_ : nchan_ - 1;
    total = total + sum(own[2].narrow(-3, 0, pairs).square(), weights_.channels, epsilons[1]);
  }
  if (weights_.has_spectra()) {
    const auto of_all = sum(squares_of_spectra(own[plane_of_spectra()]), weights_.spectra, epsilons[2]);
    total = total + of_all / static_cast<double>(neighbors_ ? neighbors_->ranks() : 1);
  }
  if (weights_.has_curvature() && n > 2) {
    const auto bent = own.narrow(0, plane_of_curvature(), 3).square().sum(0).narrow(-2, 1, n - 2).narrow(-1, 1, n - 2);
    total = total + sum(bent, weights_.curvature, epsilons[3]);
  }
  return total;
}

Tensor CubeProximal::primal(const Tensor& q, const Tensor& steps, const Tensor& dual) const {
  const auto x = ops::cut_pixels(q - seen(unsmoothed_slope(dual)) * steps, thresholds(steps));
  return mask_.defined() ? x * mask_ : x;
}

Tensor CubeProximal::thresholds(const Tensor& steps) const {
  if (!weights_.either_sign()) return {};
  return steps.to(torch::kFloat64) * problem_weights_.magnitude;
}

Tensor CubeProximal::of_each_image(const Tensor& of_problems) const {
  return of_problems.unsqueeze(1).expand({-1, nchan_}).reshape({-1});
}

void CubeProximal::apply(const Tensor& q, const std::vector<double>& steps, const std::vector<std::int64_t>& passes, Tensor& x) {
  if (apart_) {
    std::vector<std::int64_t> of_images;
    for (const auto count : passes) of_images.insert(of_images.end(), static_cast<std::size_t>(nchan_), count);
    auto images = x.view({-1, 1, x.size(-2), x.size(-1)});
    return apart_->apply(each_alone(q), steps, of_images, images);
  }
  if (variation_) {
    const auto times_steps = [&](const std::vector<double>& weights) {
      std::vector<double> products(weights.empty() ? 0 : steps.size());
      for (std::size_t i = 0; i < products.size(); ++i) products[i] = steps[i] * weights[i / static_cast<std::size_t>(nchan_)];
      return products;
    };
    return variation_->apply(q, times_steps(weights_.variation), passes, x, times_steps(weights_.magnitude));
  }
  if (!single_ && !double_) {
    const auto on_device = at::tensor(steps, torch::kFloat64).to(q.device());
    if (on_gpu_) {
      const auto counts = at::tensor(passes, torch::kInt64).to(q.device());
      return apply(q, on_device.view({-1, nchan_}), {counts, *std::max_element(passes.begin(), passes.end())}, x);
    }
    return ascend(q, on_device, ops::DualAscent(dual_, passes), x);
  }
  const auto run = [&](auto& kernels, auto type) {
    using T = decltype(type);
    kernels.apply(q.const_data_ptr<T>(), mask_.defined() ? mask_.const_data_ptr<T>() : nullptr, steps, passes,
                  x.mutable_data_ptr<T>());
  };
  if (single_) run(*single_, 0.0F);
  else run(*double_, 0.0);
}

void CubeProximal::apply(const Tensor& q, const Tensor& steps, const ops::DevicePasses& passes, Tensor& x) {
  if (apart_) {
    auto images = x.view({-1, 1, x.size(-2), x.size(-1)});
    return apart_->apply(each_alone(q), steps.reshape({-1, 1}), {of_each_image(passes.counts), passes.most}, images);
  }
  if (on_gpu_) return on_gpu_->apply(q.contiguous(), mask_, steps.contiguous(), passes, x);
  if (!variation_) {
    if (!dual_.defined()) throw ValueError("kernels of the CPU compute this map: give it numbers of the host");
    return ascend(q, steps, ops::DualAscent(dual_, passes), x);
  }
  const auto& weights = weights_.variation;
  const auto own_steps = steps.view({-1, nchan_, 1, 1});
  if (std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0; })) {
    x.copy_(ops::cut_pixels(q, thresholds(own_steps)));
    if (mask_.defined()) x.mul_(mask_);
    return;
  }
  variation_->apply(q, own_steps * problem_weights_.double_variation, passes, x, thresholds(own_steps));
}

void CubeProximal::ascend(const Tensor& q, const Tensor& steps, ops::DualAscent ascent, Tensor& x) {
  const auto problems = q.size(0);
  const auto own_steps = steps.view({problems, nchan_, 1, 1});
  const auto step = own_steps.to(q.scalar_type());
  auto last_steps = own_steps.narrow(1, nchan_ - 1, 1);
  auto largest_steps = own_steps.amax({1}, /*keepdim=*/true);
  if (neighbors_) {
    const auto after = neighbors_->exchange(own_steps.select(1, 0), last_steps).after;
    if (after.defined()) last_steps = after.view(last_steps.sizes());
    const auto own = largest_steps.to(torch::kCPU).contiguous();
    const auto largest = neighbors_->largest({own.const_data_ptr<double>(), own.const_data_ptr<double>() + own.numel()});
    largest_steps = at::tensor(largest, torch::kFloat64).to(steps.device()).view(largest_steps.sizes());
  }
  const auto next_steps = at::cat({own_steps.narrow(1, 1, nchan_ - 1), last_steps}, 1);
  std::vector<Climb> of_variation, of_channels, of_spectra, of_curvature, of_bases;
  for (std::int64_t i = 0; i < problems; ++i) {
    const ops::CubeDualSteps own(weights_, static_cast<std::size_t>(i));
    of_variation.push_back(climb_of(own.variation, own.variation_climb, own_steps[i]));
    of_channels.push_back(climb_of(own.channels, own.channels_climb, at::maximum(own_steps[i], next_steps[i])));
    of_spectra.push_back(climb_of(own.spectra, own.spectra_climb, largest_steps[i].expand_as(own_steps[i])));
    of_curvature.push_back(climb_of(own.curvature, own.curvature_climb, own_steps[i]));
    of_bases.push_back(climb_of(own.bases, own.bases_climb, own_steps[i]));
  }
  const auto of_planes = [&](Tensor Climb::*part) {
    std::vector<Tensor> planes = {on_each(of_variation, part), on_each(of_variation, part)};
    if (weights_.has_channels()) planes.push_back(on_each(of_channels, part));
    if (weights_.has_spectra()) planes.push_back(on_each(of_spectra, part));
    if (weights_.has_curvature()) planes.insert(planes.end(), 3, on_each(of_curvature, part));
    if (weights_.has_bases()) planes.insert(planes.end(), ops::SaraBases::count, on_each(of_bases, part));
    return at::stack(planes);
  };
  const auto factor = of_planes(&Climb::factor).to(q.scalar_type()), weight = of_planes(&Climb::weight);
  for (std::int64_t pass = 0; pass < ascent.most_passes(); ++pass) {
    const auto& v = ascent.ahead();
    const auto u = seen(primal(q, step, v));
    std::vector<Tensor> rises;
    rises.push_back(ops::differences(u, counted_));
    if (weights_.has_channels()) rises.push_back(between(u).unsqueeze(0));
    if (weights_.has_spectra()) rises.push_back(u.unsqueeze(0));
    if (weights_.has_curvature()) rises.push_back(ops::second_differences(u, curved_));
    if (weights_.has_bases()) rises.push_back(ops::SaraBases(u.size(-1)).analyze(u));
    auto next = v + at::cat(rises) * factor;
    auto variation = next.narrow(0, 0, 2);
    variation.div_(variation.square().sum(0).sqrt().clamp_min(1));
    if (weights_.has_channels()) next[2].clamp_(-1, 1);
    if (weights_.has_spectra()) {
      auto spectra = next[plane_of_spectra()];
      spectra.div_(squares_of_spectra(spectra).sqrt().clamp_min(1));
    }
    if (weights_.has_curvature()) {
      auto bent = next.narrow(0, plane_of_curvature(), 3);
      bent.div_(bent.square().sum(0).sqrt().clamp_min(1));
    }
    if (weights_.has_bases()) next.narrow(0, plane_of_bases(), ops::SaraBases::count).clamp_(-1, 1);
    const auto change = next - ascent.dual();
    auto turned = (((v - next) * change).sum({-2, -1}, /*keepdim=*/true, torch::kFloat64) * weight)
                      .sum(at::IntArrayRef({0, 2}), /*keepdim=*/true)[0]
                      .contiguous();
    if (neighbors_) neighbors_->sum(turned);
    ascent.move_to(next, turned > 0);
  }
  x.copy_(primal(q, step, ascent.dual()));
  dual_.copy_(ascent.dual());
}

}  // namespace mpol
