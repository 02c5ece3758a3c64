#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/stack.h>
#include <torch/types.h>

#include <mpol_cpp/core/accumulate.h>
#include <mpol_cpp/device/tensor_data.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_convolution.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_product.h>

namespace mpol {

/// Computes chi^2 of each image (problem, channel) with its gradient, from the kernel, the dirty vector and the constant of a
/// NormalOperator. In float32 on the CPU it is a quadratic form about an anchor x0, with D = x - x0, chi0 and g0 in float64:
///
///   chi^2 = chi0 + g0^T D + D^T T D,   gradient = g0 + 2 T D
///
/// An image becomes the anchor itself where 2 T D, which float32 knows to 2e-7, is larger than three times the gradient.
class NormalForm : public std::enable_shared_from_this<NormalForm> {
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
  /// @return          chi^2 of each channel, (…, nchan), float64
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
    return values.view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2)));
  }

  /// 2 T x for the images of every problem.
  Tensor twice_product(const Tensor& x) {
    const std::lock_guard lock(mutex_);
    follow();
    if (!device().is_cpu()) return ops::toeplitz_product(x, kernel_).mul(2);
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

  /// The gradient at the sky, which is known, as a differentiable function of it.
  Tensor differentiable(const Tensor& sky, const Tensor& gradient);

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

}  // namespace mpol
