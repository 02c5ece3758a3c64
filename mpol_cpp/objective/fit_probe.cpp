#include <mpol_cpp/objective/fit_probe.h>

#include <limits>

#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

namespace mpol {
namespace {

std::vector<double> flux_of(const Tensor& image, const GridCoords& coords) {
  const auto flux = (image.to(torch::kFloat64).sum({-2, -1}) * coords.cell_area()).contiguous();
  return {flux.const_data_ptr<double>(), flux.const_data_ptr<double>() + flux.numel()};
}

double norm_of(const Tensor& values) { return values.to(torch::kFloat64).square().sum().sqrt().item<double>(); }

Tensor cpu_copy(const Tensor& image) { return image.detach().to(torch::kCPU).clone(); }

Tensor sky_of(ImageModel& model) {
  const torch::NoGradGuard no_gradient;
  return model.make_sky().detach().clone();
}

}  // namespace

FitProbe::FitProbe(const Objective& objective, ImageModel& start) : objective_(objective), last_(cpu_copy(sky_of(start))) {}

FitView FitProbe::look(ImageModel& model) {
  const auto sky = sky_of(model);
  FitView view{cpu_copy(sky), cpu_copy(gradient_at(model, sky)), {}};
  view.gradient_norm = norm_of(view.gradient);
  if (last_.defined()) view.change = view.image - last_;
  view.largest_change = view.change.defined() ? view.change.abs().max().item<double>() : std::numeric_limits<double>::quiet_NaN();
  view.flux = flux_of(view.image, model.coords());
  last_ = view.image;
  return view;
}

/// Evaluating may move a likelihood's working state, on which its next values depend to the last bit.
Tensor FitProbe::gradient_at(ImageModel& model, const Tensor& sky) const {
  auto& likelihood = objective_.likelihood();
  const auto state = likelihood.working_state();
  const torch::AutoGradMode with_gradient(true);
  const auto image = sky.clone().set_requires_grad(true);
  const auto base = model.base().defined() ? model.base().detach() : Tensor();
  const auto total = objective_.evaluate(ModelOutput(model.coords(), base, image)).total.sum();
  const auto gradient = torch::autograd::grad({total}, {image}, {}, std::nullopt, false, /*allow_unused=*/true)[0];
  if (!state.empty()) likelihood.load_working_state(state);
  return gradient.defined() ? gradient : at::zeros_like(sky);
}

}  // namespace mpol
