#include <mpol_cpp/likelihoods/exact_likelihood.h>

#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/tensor_data.h>
#include <mpol_cpp/likelihoods/sky_checks.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_convolution.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_product.h>

namespace mpol {

/// chi^2 of each image (problem, channel) with its gradient.
class NormalForm {
 public:
  /// These tensors move with the module that holds them.
  NormalForm(std::int64_t npix, std::int64_t nchan, KernelStorage storage, Tensor kernel, const Tensor& dirty,
             const Tensor& constant)
      : npix_(npix),
        nchan_(nchan),
        storage_(std::move(storage)),
        kernel_(std::move(kernel)),
        dirty_(dirty),
        constant_(constant),
        double_(npix) {
    follow();
  }

  torch::Device device() const { return kernel_.device(); }

  /// @param sky       (…, nchan, npix, npix) contiguous
  /// @param gradient  same, overwritten
  /// @return          (…) float64
  Tensor evaluate(const Tensor& sky, Tensor& gradient) {
    const std::lock_guard lock(mutex_);
    follow();
    if (!device().is_cpu()) {
      return ops::toeplitz_quadratic(sky, kernel_, linear_, constant_, gradient, Accumulate::overwrite);
    }
    const auto images = sky.numel() / pixels();
    auto values = at::empty({images}, torch::kFloat64);
    auto* value = values.mutable_data_ptr<double>();
    if (sky.scalar_type() == torch::kFloat64) {
      for (std::int64_t i = 0; i < images; ++i) {
        value[i] = evaluate_double(sky.const_data_ptr<double>() + i * pixels(), i % nchan_,
                                   gradient.mutable_data_ptr<double>() + i * pixels());
      }
    } else {
      prepare_single(images);
      for (std::int64_t i = 0; i < images; ++i) {
        value[i] =
            evaluate_single(sky.const_data_ptr<float>() + i * pixels(), i, gradient.mutable_data_ptr<float>() + i * pixels());
      }
    }
    return values.view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2))).sum(-1);
  }

  /// 2 T x for the images of every problem.
  Tensor twice_product(const Tensor& x) {
    const std::lock_guard lock(mutex_);
    follow();
    if (!device().is_cpu()) return ops::toeplitz_product(x.to(torch::kFloat64), kernel_).mul(2).to(x.scalar_type());
    const auto image = x.contiguous();
    auto product = at::empty_like(image);
    const auto images = image.numel() / pixels();
    if (x.scalar_type() == torch::kFloat32) prepare_single(0);
    for (std::int64_t i = 0; i < images; ++i) {
      if (x.scalar_type() == torch::kFloat64) {
        double_.apply(kernel_of<double>(kernel_, i % nchan_), image.const_data_ptr<double>() + i * pixels(),
                      product.mutable_data_ptr<double>() + i * pixels());
      } else {
        single_->apply(kernel_of<float>(single_kernel_, i % nchan_), image.const_data_ptr<float>() + i * pixels(),
                       product.mutable_data_ptr<float>() + i * pixels());
      }
    }
    return product.mul_(2);
  }

  std::int64_t anchors() const { return anchored_; }

  /// Images of the anchors, (images, npix, npix) float32; undefined while one is missing.
  Tensor anchor_images() {
    const std::lock_guard lock(mutex_);
    if (!device().is_cpu()) return {};
    follow();
    std::vector<Tensor> images;
    images.reserve(anchors_.size());
    for (const auto& anchor : anchors_) {
      if (!anchor.image.defined()) return {};
      images.push_back(anchor.image);
    }
    return images.empty() ? Tensor() : at::stack(images);
  }

  /// Makes the anchors of some images, or forgets all.
  void set_anchor_images(const Tensor& images) {
    const std::lock_guard lock(mutex_);
    anchors_.clear();
    if (!images.defined() || !device().is_cpu()) return;  // a GPU needs none
    follow();
    prepare_single(images.size(0));
    for (std::int64_t i = 0; i < images.size(0); ++i) set_anchor(images[i], i);
  }
  std::int64_t memory_bytes() const {
    auto bytes = kernel_.nbytes() + linear_.nbytes() + constant_.nbytes();
    if (single_kernel_.defined()) bytes += single_kernel_.nbytes();
    for (const auto& anchor : anchors_) {
      if (anchor.image.defined()) bytes += anchor.image.nbytes() + anchor.gradient.nbytes();
    }
    return static_cast<std::int64_t>(bytes);
  }

 private:
  struct Anchor {
    Tensor image, gradient;  // (npix, npix) float32
    double value = 0;
  };

  std::int64_t pixels() const { return npix_ * npix_; }

  /// What was made of the tensors is made again where they are now, and of what they hold now: they may have been moved, or
  /// loaded from a file.
  void follow() {
    const std::array versions = {detail::version_of(kernel_), detail::version_of(dirty_), detail::version_of(constant_)};
    if (linear_.defined() && linear_.device() == device() && versions == versions_) return;
    const torch::NoGradGuard no_grad;
    linear_ = dirty_ * -2;
    single_.reset();
    single_kernel_ = Tensor();
    if (versions != versions_) anchors_.clear();  // of other data
    versions_ = versions;
  }

  template <typename T>
  const T* kernel_of(const Tensor& kernel, std::int64_t channel) const {
    return kernel.const_data_ptr<T>() + channel * 2 * npix_ * (npix_ + 1);
  }

  double evaluate_double(const double* sky, std::int64_t channel, double* gradient) {
    const auto sums = double_.quadratic(kernel_of<double>(kernel_, channel), sky, nullptr,
                                        linear_.const_data_ptr<double>() + channel * pixels(), gradient);
    return sums.value + constant_.const_data_ptr<double>()[channel];
  }

  void prepare_single(std::int64_t images) {
    if (!single_) {
      single_ = std::make_unique<ops::ToeplitzConvolution<float>>(npix_);
      single_kernel_ = storage_.copy(kernel_, torch::kFloat32);
    }
    if (images > 0 && static_cast<std::int64_t>(anchors_.size()) != images)
      anchors_ = std::vector<Anchor>(static_cast<std::size_t>(images));
  }

  double evaluate_single(const float* sky, std::int64_t image, float* gradient) {
    auto& anchor = anchors_[static_cast<std::size_t>(image)];
    const auto channel = image % nchan_;
    if (anchor.image.defined()) {
      constexpr double largest_ratio = 3;
      const auto sums = single_->quadratic(kernel_of<float>(single_kernel_, channel), sky, anchor.image.const_data_ptr<float>(),
                                           anchor.gradient.const_data_ptr<float>(), gradient);
      if (sums.change <= largest_ratio * largest_ratio * sums.gradient) return anchor.value + sums.value;
    }
    ++anchored_;
    set_anchor(at::from_blob(const_cast<float*>(sky), {npix_, npix_}, torch::kFloat32), image);
    at::from_blob(gradient, {npix_, npix_}, torch::kFloat32).copy_(anchor.gradient);
    return anchor.value;
  }

  void set_anchor(const Tensor& sky, std::int64_t image) {
    auto& anchor = anchors_[static_cast<std::size_t>(image)];
    const auto precise = sky.to(torch::kFloat64);
    auto slope = at::empty_like(precise);
    anchor.value = evaluate_double(precise.const_data_ptr<double>(), image % nchan_, slope.mutable_data_ptr<double>());
    anchor.image = sky.clone();
    anchor.gradient = slope.to(torch::kFloat32);
  }

  std::int64_t npix_, nchan_;
  KernelStorage storage_;
  Tensor kernel_, dirty_, linear_, constant_, single_kernel_;
  std::array<std::int64_t, 3> versions_{};  // of kernel_, dirty_ and constant_
  ops::ToeplitzConvolution<double> double_;
  std::unique_ptr<ops::ToeplitzConvolution<float>> single_;
  std::vector<Anchor> anchors_;
  std::int64_t anchored_ = 0;
  std::mutex mutex_;
};

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using NormalFormPtr = std::shared_ptr<NormalForm>;

/// What an autograd graph can keep.
struct NormalFormHolder : torch::CustomClassHolder {
  explicit NormalFormHolder(NormalFormPtr held) : form(std::move(held)) {}
  NormalFormPtr form;
};

c10::IValue kept_normal_form(const NormalFormPtr& form) {
  return c10::IValue::make_capsule(c10::make_intrusive<NormalFormHolder>(form));
}

NormalFormPtr normal_form_of(AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<NormalFormHolder>(context->saved_data["form"].toCapsule())->form;
}

/// x -> 2 T x, its own adjoint.
struct TwiceProduct : torch::autograd::Function<TwiceProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const NormalFormPtr& form) {
    context->saved_data["form"] = kept_normal_form(form);
    return form->twice_product(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {TwiceProduct::apply(gradients[0], normal_form_of(context)), Tensor()};
  }
};

/// sky -> the gradient of chi^2 given as a constant; its own derivative is 2 T.
struct GradientAt : torch::autograd::Function<GradientAt> {
  static Tensor forward(AutogradContext* context, const Tensor&, const Tensor& gradient, const NormalFormPtr& form) {
    context->saved_data["form"] = kept_normal_form(form);
    return gradient.clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {TwiceProduct::apply(gradients[0], normal_form_of(context)), Tensor(), Tensor()};
  }
};

struct ExactChiSquared : torch::autograd::Function<ExactChiSquared> {
  static Tensor forward(AutogradContext* context, const Tensor& sky, const NormalFormPtr& form) {
    const auto image = sky.contiguous();
    auto gradient = at::empty_like(image);
    const auto value = form->evaluate(image, gradient);
    context->save_for_backward({sky, gradient});
    context->saved_data["form"] = kept_normal_form(form);
    return value.to(sky.scalar_type());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto slope = GradientAt::apply(saved[0], saved[1], normal_form_of(context));
    return {gradients[0].unsqueeze(-1).unsqueeze(-1).unsqueeze(-1) * slope, Tensor()};
  }
};

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
  return ExactChiSquared::apply(sky, form_);
}

Tensor ExactLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  check(sky);
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_grad;
  const auto image = sky.contiguous();
  if (accumulate == Accumulate::overwrite && gradient.is_contiguous()) return form_->evaluate(image, gradient);
  auto slope = at::empty_like(image);
  const auto value = form_->evaluate(image, slope);
  if (accumulate == Accumulate::add) gradient.add_(slope);
  else gradient.copy_(slope);
  return value;
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

}  // namespace mpol
