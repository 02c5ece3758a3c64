// What ConvexObjective does where values stay on the device.
#include <mpol_cpp/solvers/convex_objective.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/ops/proximal/gpu/gpu_pixel_sums.h>

namespace mpol {

const Tensor& ConvexObjective::device_weights(const Term& term) const {
  return device_weights_[static_cast<std::size_t>(&term - objective_.terms().data())];
}

Tensor ConvexObjective::counted(const Term& term, const Tensor& sums) const {
  const auto& factors = device_factors_[static_cast<std::size_t>(&term - objective_.terms().data())];
  if (!factors.defined()) return sums.sum(1);
  if (images_apart_) return (sums.view({-1, channels_}) * factors).flatten();
  return (sums * factors).sum(1);
}

ConvexObjective::DeviceValues ConvexObjective::evaluate_on_device(const Tensor& images, Tensor& gradient) {
  const auto parts = images.size(0);
  const auto of_parts = [parts](const Tensor& values) { return values.to(torch::kFloat64).reshape({parts}); };
  const auto nll = of_parts(objective_.nll(gradient_into(images, gradient)));
  const auto& all = objective_.terms();
  if (all.empty()) return {at::zeros_like(nll), at::stack({nll, nll})};
  Tensor of_images, known;  // of each image and of each problem, in the order of PixelSum, where kernels tell them
  const bool has_kernels = !images.is_cpu() || by_ == CubeProximal::By::gpu_kernels;
  if (has_kernels && sums_pixels()) {
    of_images = ops::gpu_pixel_sums(sky_, used_epsilons());
    known = of_images.size(2) == 1 ? of_images.squeeze(2) : of_images.sum(2);
  }
  const auto known_of = [&](const Term& term, PixelSum sum) {
    const auto i = static_cast<std::int64_t>(sum);
    return term.channel_factors().empty() ? known[i] : counted(term, of_images[i]);
  };
  std::vector<Tensor> values;
  bool all_are_simple = true;  // of those that are there
  for (const auto& term : all) {
    const auto sum = pixel_sum_of(term.kind());
    all_are_simple = all_are_simple && (term.is_off() || is_simple(term.kind()));
    if (term.is_off()) values.push_back(at::zeros_like(nll));
    else if (known.defined() && sum && has_first_epsilon(term)) values.push_back(known_of(term, *sum));
    else values.push_back(of_parts(value_of(term, images, sky_)));
  }
  const auto weighted = at::stack(values) * term_weights_;
  const auto of_terms = weighted.sum(0);
  auto simple = all_are_simple ? of_terms : (weighted * simple_).sum(0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& term = all[i];
    const auto share = share_of_sum(term.kind());
    if (term.is_off() || share == 0) continue;
    const auto pixels = known.defined() ? known_of(term, PixelSum::pixels)
                                        : counted(term, sky_.sum({-2, -1}, /*keepdim=*/false, torch::kFloat64));
    simple = simple - share * term_weights_[static_cast<std::int64_t>(i)] * pixels;
  }
  const auto total_and_nll = at::stack({nll + of_terms, nll});
  return {simple, at::cat({total_and_nll, weighted})};
}

Tensor ConvexObjective::device_scales(const Tensor& losses) const {
  const auto total = losses[0], nll = losses[1], of_terms = total - nll;
  return at::where(total > nll, images_apart_ ? at::maximum(of_terms, nll * least_share_of_images) : of_terms, nll);
}

}  // namespace mpol
