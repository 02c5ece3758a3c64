#include <mpol_cpp/likelihoods/exact_likelihood.h>

#include <algorithm>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/sample_strips.h>
#include <mpol_cpp/likelihoods/forms/form_chi_squared.h>
#include <mpol_cpp/likelihoods/forms/normal_form.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>
#include <mpol_cpp/likelihoods/likelihood_kind.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_product.h>

namespace mpol {
namespace {

LikelihoodMemory exact_memory(const LikelihoodSizes& sizes) {
  const auto npix = static_cast<double>(sizes.npix), nchan = static_cast<double>(sizes.nchan);
  const auto problems = static_cast<double>(sizes.problems);
  const bool single = sizes.dtype == torch::kFloat32;
  // Per channel kernel, dirty vector and its double, and in float32 the kernel again and the anchors with their copies for
  // checkpoints; one plane of twice the image's size to transform in, for each precision.
  const double kernels = sizes.kernels_in_memory ? 16 + (single ? 8 : 0) : 0;
  const double of_channel = 16 + kernels + (single ? 16 * problems : 0), planes = 32 + (single ? 16 : 0);
  const double evaluation = sizes.on_gpu ? ops::toeplitz_bytes(sizes.npix, sizes.nchan * sizes.problems) : 0;
  // One transform in float64 on four times the image's size, with its results and the points of one block; per channel
  // the kernel and what the operator and the likelihood made from it have both. Of one block of samples coordinates, data and
  // weights, and the sorted points; of a chunk the order of its samples.
  const auto samples = static_cast<double>(sizes.visibilities);
  const SampleStripOptions strips;
  const auto most = static_cast<double>(strips.most_samples);
  const double block =
      std::min(samples, most) * 100 + (samples > most ? std::min(samples, static_cast<double>(strips.chunk)) * 6 : 0);
  return {npix * npix * (of_channel * nchan + planes) + evaluation,
          npix * npix * (384 + (20 + (sizes.kernels_in_memory ? 16 : 0)) * nchan) + block, detail::residual_bytes(sizes),
          evaluation};
}

std::shared_ptr<Likelihood> make_exact(const LikelihoodSource& source) {
  ExactLikelihood exact(source.coords(), source.visibilities, source.channels, source.kernels);
  exact->to(source.device);
  return exact.ptr();
}

}  // namespace

ExactLikelihoodImpl::ExactLikelihoodImpl(NormalOperator&& normal)
    : Likelihood(normal.coords()),
      nchan_(normal.nchan()),
      cells_(normal.occupied_cells()),
      nvis_(normal.nvis()),
      storage_(normal.storage()) {
  const auto& kernel = normal.kernel();
  if (!is_shared(kernel)) kernel_ = kernel;
  else kernel_ = kernel.is_cpu() ? storage_.copy(kernel, torch::kFloat64) : kernel.clone();
  dirty_ = normal.dirty().clone();
  constant_ = normal.constant().clone();
  reset();
}

void ExactLikelihoodImpl::reset() {
  // Tensors of its own, of the same values: a copy of the module that is moved or cast leaves this one alone.
  kernel_ = register_metadata("kernel", kernel_.variable_data());
  dirty_ = register_metadata("dirty", dirty_.variable_data());
  constant_ = register_metadata("constant", constant_.variable_data());
  cells_.follow(register_buffer("cells", cells_.to_register()));
  nvis_.follow(register_buffer("nvis", nvis_.to_register()));
  form_ = std::make_shared<NormalForm>(coords().npix(), nchan_, storage_, kernel_, dirty_, constant_);
}

void ExactLikelihoodImpl::check(const Tensor& sky) const {
  losses::detail::check_sky_on(form_->device(), sky, nchan_, coords().npix(), "exact");
}

Tensor ExactLikelihoodImpl::chi_squared(const Tensor& sky) {
  check(sky);
  return losses::detail::FormChiSquared<NormalForm>::apply(sky, form_);
}

Tensor ExactLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  return ExactLikelihoodImpl::channel_values_and_gradient(sky, gradient, accumulate).sum(-1);
}

Tensor ExactLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  check(sky);
  return losses::detail::form_values_and_gradient(*form_, sky, gradient, accumulate);
}

NamedTensors ExactLikelihoodImpl::working_state() const {
  const auto images = form_->anchor_images();
  if (!images.defined()) return {};
  return {{"anchors", images}};
}

void ExactLikelihoodImpl::load_working_state(const NamedTensors& state) {
  const auto found = state.find("anchors");
  if (state.size() != (found == state.end() ? 0 : 1)) throw FileError("the exact likelihood has no such state, only anchors");
  if (found == state.end()) return form_->set_anchor_images({});
  const auto images = found->second.to(torch::kCPU, torch::kFloat32).contiguous();
  const auto npix = coords().npix();
  if (images.dim() != 3 || images.size(0) % nchan_ != 0 || images.size(1) != npix || images.size(2) != npix) {
    throw FileError(fmt::format("the anchors of the exact likelihood have shape {}; they need (n * {}, {}, {})",
                                images.sizes().vec(), nchan_, npix, npix));
  }
  form_->set_anchor_images(images);
}

std::int64_t ExactLikelihoodImpl::anchors() const { return form_->anchors(); }

std::int64_t ExactLikelihoodImpl::memory_bytes() const {
  return form_->memory_bytes() + static_cast<std::int64_t>(dirty_.nbytes());
}

LikelihoodKind ExactLikelihoodImpl::kind() {
  return {
      .name = "exact", .help = "of the visibilities themselves", .has_kernels = true, .memory = exact_memory, .make = make_exact};
}

}  // namespace mpol
