#include <mpol_cpp/fourier/nufft.h>

#include <utility>

#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/kept_in_graph.h>
#include <mpol_cpp/device/streams.h>
#include <mpol_cpp/fourier/nufft_plans.h>

namespace mpol {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using NufftPlansPtr = std::shared_ptr<NufftPlans>;

Tensor apply_type2(const Tensor& sky, const NufftPlansPtr& plans);
Tensor apply_type1(const Tensor& visibilities, const NufftPlansPtr& plans);

NufftPlansPtr plans_of(AutogradContext* context) { return detail::kept_in_graph<NufftPlans>(context->saved_data["plans"]); }

struct Type2 : torch::autograd::Function<Type2> {
  static Tensor forward(AutogradContext* context, const Tensor& sky, const NufftPlansPtr& plans) {
    context->saved_data["plans"] = detail::keep_in_graph(plans);
    return plans->type2(sky);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {apply_type1(gradients[0], plans_of(context)), Tensor()};
  }
};

struct Type1 : torch::autograd::Function<Type1> {
  static Tensor forward(AutogradContext* context, const Tensor& visibilities, const NufftPlansPtr& plans) {
    context->saved_data["plans"] = detail::keep_in_graph(plans);
    return plans->type1(visibilities);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {apply_type2(gradients[0], plans_of(context)), Tensor()};
  }
};

Tensor apply_type2(const Tensor& sky, const NufftPlansPtr& plans) { return Type2::apply(sky, plans); }
Tensor apply_type1(const Tensor& visibilities, const NufftPlansPtr& plans) { return Type1::apply(visibilities, plans); }

/// The last dimensions must be those given.
void check_nufft_input(const Tensor& values, at::IntArrayRef last, const char* what) {
  if (!detail::can_compute(values.device())) {
    throw DeviceError(
        fmt::format("the {} on {}: the nonuniform transform runs on the CPU, a CUDA device or another accelerator; "
                    "move them there",
                    what, values.device().str()));
  }
  const auto dims = static_cast<std::int64_t>(last.size());
  if (values.dim() < dims || values.sizes().slice(static_cast<std::size_t>(values.dim() - dims)) != last) {
    throw ShapeError(fmt::format("the {} of shape {}; expected (…, {})", what, values.sizes().vec(), fmt::join(last, ", ")));
  }
}

}  // namespace

NufftImpl::NufftImpl(const GridCoords& coords, Baselines baselines, std::int64_t nchan, NufftOptions options)
    : plans_(std::make_shared<NufftPlans>(coords, std::move(baselines), nchan, options)) {}

const GridCoords& NufftImpl::coords() const { return plans_->coords(); }
const Baselines& NufftImpl::baselines() const { return plans_->baselines(); }
std::int64_t NufftImpl::nchan() const { return plans_->nchan(); }
const NufftOptions& NufftImpl::options() const { return plans_->options(); }
std::int64_t NufftImpl::memory_bytes() const { return plans_->memory_bytes(); }
NufftPlans& nufft_plans(const NufftImpl& nufft) { return *nufft.plans_; }

Tensor NufftImpl::forward(const Tensor& sky) const {
  const auto npix = coords().npix();
  check_nufft_input(sky, {nchan(), npix, npix}, "images are");
  if (sky.scalar_type() != torch::kFloat32 && sky.scalar_type() != torch::kFloat64) {
    throw ShapeError(fmt::format("the images are {}; cast them to float32 or float64", c10::toString(sky.scalar_type())));
  }
  return apply_type2(sky, plans_);
}

Tensor NufftImpl::adjoint(const Tensor& visibilities) const {
  check_nufft_input(visibilities, {nchan(), baselines().nvis()}, "visibilities are");
  if (visibilities.scalar_type() != torch::kComplexFloat && visibilities.scalar_type() != torch::kComplexDouble) {
    throw ShapeError(
        fmt::format("the visibilities are {}; cast them to complex64 or complex128", c10::toString(visibilities.scalar_type())));
  }
  return apply_type1(visibilities, plans_);
}

}  // namespace mpol
