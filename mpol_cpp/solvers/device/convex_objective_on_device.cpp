// What ConvexObjective does where values stay on the device.
#include <mpol_cpp/solvers/convex_objective.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/ops/proximal/gpu/gpu_pixel_sums.h>

namespace mpol {

const Tensor& ConvexObjective::device_weights(const Term& term) const {
  return device_weights_[static_cast<std::size_t>(&term - objective_.terms().data())];
}

ConvexObjective::DeviceValues ConvexObjective::evaluate_on_device(const Tensor& images, Tensor& gradient) {
  const auto problems = images.size(0);
  const auto of_problems = [problems](const Tensor& values) { return values.to(torch::kFloat64).reshape({problems}); };
  const auto nll = of_problems(objective_.nll(gradient_into(images, gradient)));
  auto total = nll, simple = at::zeros_like(nll);
  Tensor known;  // of each problem, in the order of PixelSum, where kernels tell them
  const bool has_kernels = !images.is_cpu() || by_ == CubeProximal::By::gpu_kernels;
  if (has_kernels && sums_pixels())
    known = ops::gpu_pixel_sums(sky_, {used_epsilon(TermKind::tv_image), used_epsilon(TermKind::tv_slope)}).sum(-1);
  const auto value_of = [&](const Term& term) {
    const auto sum = pixel_sum_of(term.kind());
    if (known.defined() && sum && has_first_epsilon(term)) return known[static_cast<std::int64_t>(*sum)];
    return of_problems(term.evaluate(ModelOutput(model_->coords(), {}, shaped_like_model(sky_))));
  };
  std::vector<Tensor> terms;
  for (const auto& term : objective_.terms()) {
    if (term.is_off()) {
      terms.push_back(at::zeros_like(nll));
      continue;
    }
    const auto& weights = device_weights(term);
    terms.push_back(value_of(term) * weights);
    total = total + terms.back();
    if (!is_length(term.kind())) continue;
    simple = simple + terms.back();
    const auto share = share_of_sum(term.kind());
    if (share == 0) continue;
    const auto pixels = known.defined() ? known[0] : sky_.sum({-3, -2, -1}, /*keepdim=*/false, torch::kFloat64);
    simple = simple - share * weights * pixels;
  }
  const auto columns = terms.empty() ? at::stack({total, nll}) : at::cat({at::stack({total, nll}), at::stack(terms)});
  return {simple, columns};
}

}  // namespace mpol
