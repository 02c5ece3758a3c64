#pragma once

#include <array>
#include <complex>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/accumulate.h>
#include <mpol_cpp/device/tensor_data.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/fourier/nufft_plans.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_plan.h>

namespace mpol {

/// Computes chi^2 of loose visibilities with its gradient: keeps the data in the order of the plans, for each device and dtype
/// that was used. `data` and `weights` move with the module that holds them.
class LooseForm {
 public:
  LooseForm(Nufft nufft, std::shared_ptr<const losses::detail::ImageChannels> channels, Tensor data, Tensor weights)
      : nufft_(std::move(nufft)), channels_(std::move(channels)), data_(std::move(data)), weights_(std::move(weights)) {}

  /// The same of other tensors with the same values.
  std::shared_ptr<LooseForm> of(Tensor data, Tensor weights) const {
    return std::make_shared<LooseForm>(nufft_, channels_, std::move(data), std::move(weights));
  }

  torch::Device device() const { return data_.device(); }
  const Baselines& baselines() const { return nufft_->baselines(); }

  /// @param sky       (…, nchan, npix, npix) contiguous
  /// @param gradient  same, overwritten or added to
  /// @return          chi^2 of each channel, (…, nchan), float64
  Tensor evaluate(const Tensor& sky, Tensor& gradient, Accumulate accumulate = Accumulate::overwrite) {
    if (nufft_plans(*nufft_).uses_gpu_kernels(sky.device())) {
      return sky.scalar_type() == torch::kFloat32 ? evaluate_on_gpu<float>(sky, gradient, accumulate)
                                                  : evaluate_on_gpu<double>(sky, gradient, accumulate);
    }
    if (!sky.is_cpu()) return evaluate_by_tensors(sky, gradient, accumulate);
    if (accumulate == Accumulate::overwrite && !channels_->one_to_one()) {
      gradient.zero_();
      accumulate = Accumulate::add;
    }
    if (sky.scalar_type() == torch::kFloat32) return evaluate_in<float>(sky, gradient, accumulate);
    return evaluate_in<double>(sky, gradient, accumulate);
  }

  void prepare(torch::Dtype dtype) {
    const auto device = data_.device();
    if (!device.is_cpu() && !device.is_cuda()) return;
    if (dtype == torch::kFloat32) prepare_in<float>(device);
    else prepare_in<double>(device);
  }

  void keep_for(c10::Stream stream) const {
    nufft_plans(*nufft_).keep_for(stream);
    data_.record_stream(stream);
    weights_.record_stream(stream);
    for (const auto& [place, data] : on_devices_) {
      for (const auto& tensor : {data.real, data.imag, data.weight}) tensor.record_stream(stream);
    }
  }

  Tensor model(const Tensor& sky) const { return nufft_->forward(channels_->images(sky)); }

  /// The gradient as an expression that has derivatives itself.
  Tensor differentiable(const Tensor& sky, const Tensor&) const {
    const auto complex_type = c10::toComplexType(sky.scalar_type());
    const auto residual = (model(sky) - data_.to(complex_type)) * weights_.to(sky.scalar_type());
    return channels_->sum(nufft_->adjoint(residual) * 2, sky);
  }

  std::int64_t memory_bytes() const {
    auto sorted = 3 * data_.numel() * static_cast<std::int64_t>((single_.empty() ? 0 : 4) + (double_.empty() ? 0 : 8));
    for (const auto& [place, data] : on_devices_) sorted += static_cast<std::int64_t>(3 * data.weight.nbytes());
    return nufft_->memory_bytes() + static_cast<std::int64_t>(data_.nbytes() + weights_.nbytes()) + sorted;
  }

 private:
  /// By LibTorch's operations, on any accelerator.
  Tensor evaluate_by_tensors(const Tensor& sky, Tensor& gradient, Accumulate accumulate) const {
    const auto v = model(sky), residual = v - data_.to(v.scalar_type());
    const auto weights = weights_.to(sky.scalar_type());
    if (accumulate == Accumulate::overwrite) gradient.zero_();
    channels_->add(nufft_->adjoint(residual * weights * 2), gradient);
    const auto squares = at::view_as_real(residual).square().sum({-1}) * weights;
    return of_image_channels(squares.sum({-1}, false, torch::kFloat64), sky);
  }

  template <typename T>
  using Sorted = std::vector<std::shared_ptr<const typename ops::NufftPlan<T>::Data>>;

  template <typename T>
  Sorted<T>& sorted() {
    if constexpr (std::is_same_v<T, float>) return single_;
    else return double_;
  }

  /// What was sorted is sorted again once other data were loaded; what lies on a device is given back when the data have left it.
  void follow() {
    if (data_.device() != device_) {
      device_ = data_.device();
      on_devices_.clear();
      nufft_plans(*nufft_).keep_device_plans(device_);
    }
    const std::array versions = {detail::version_of(data_), detail::version_of(weights_)};
    if (versions == versions_) return;
    versions_ = versions;
    single_.clear();
    double_.clear();
    on_devices_.clear();
  }

  template <typename T>
  const Sorted<T>& sorted_data() {
    const std::lock_guard lock(mutex_);
    follow();
    auto& all = sorted<T>();
    for (auto channel = static_cast<std::int64_t>(all.size()); channel < data_.size(0); ++channel) {
      const auto& plan = nufft_plans(*nufft_).template plan<T>(channel);
      const bool single = data_.scalar_type() == torch::kComplexFloat && weights_.scalar_type() == torch::kFloat32;
      all.push_back(single ? sorted_channel<float>(plan, channel) : sorted_channel<double>(plan, channel));
    }
    return all;
  }

  template <typename Real, typename Plan>
  auto sorted_channel(const Plan& plan, std::int64_t channel) const {
    constexpr auto dtype = c10::CppTypeToScalarType<Real>::value;
    const auto data = data_[channel].to(c10::toComplexType(dtype)).contiguous(),
               weights = weights_[channel].to(dtype).contiguous();
    return plan.sorted(reinterpret_cast<const std::complex<Real>*>(data.template const_data_ptr<c10::complex<Real>>()),
                       weights.template const_data_ptr<Real>());
  }

  template <typename T>
  void prepare_in(torch::Device device) {
    if (!nufft_plans(*nufft_).uses_gpu_kernels(device)) {
      sorted_data<T>();
      return;
    }
    const auto count = nufft_->baselines().shared() ? 1 : channels_->data_channels();
    for (std::int64_t channel = 0; channel < count; ++channel) data_on_gpu<T>(device, channel);
  }

  template <typename T>
  Tensor evaluate_in(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
    const auto& data = sorted_data<T>();
    const auto npix = nufft_->coords().npix(), pixels = npix * npix;
    const auto nchan = channels_->nchan(), problems = sky.numel() / (nchan * pixels);
    auto values = at::zeros(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2)), torch::kFloat64);
    auto* value = values.template mutable_data_ptr<double>();
    const auto channels = data.size(), together = nufft_->baselines().shared() ? channels : 1;
    for (std::size_t first = 0; first < channels; first += together) {
      std::vector<typename ops::NufftPlan<T>::Comparison> comparisons;
      comparisons.reserve(static_cast<std::size_t>(problems) * together);
      for (std::int64_t problem = 0; problem < problems; ++problem) {
        for (auto channel = first; channel < first + together; ++channel) {
          const auto at = (problem * nchan + (*channels_)[channel]) * pixels;
          comparisons.push_back({sky.const_data_ptr<T>() + at, data[channel].get(), gradient.mutable_data_ptr<T>() + at});
        }
      }
      const auto& plan = nufft_plans(*nufft_).template plan<T>(static_cast<std::int64_t>(first));
      const auto sums = plan.fused(comparisons, nufft_->coords().cell_area(), accumulate);
      for (std::size_t i = 0; i < sums.size(); ++i)
        value[static_cast<std::int64_t>(i / together) * nchan + (*channels_)[first + i % together]] += sums[i];
    }
    return values;
  }

  /// By the plans of a GPU: all channels in one stack where they share their baselines, else one after the other.
  template <typename T>
  Tensor evaluate_on_gpu(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
    const auto npix = nufft_->coords().npix(), count = channels_->data_channels();
    const bool shared = nufft_->baselines().shared(), in_place = channels_->one_to_one() && accumulate == Accumulate::overwrite;
    const auto images = channels_->images(sky).contiguous().view({-1, count, npix, npix});
    auto slopes = in_place ? gradient.view(images.sizes()) : at::empty_like(images);
    auto values = at::empty({images.size(0), count}, images.options().dtype(torch::kFloat64));
    const auto work = [&](std::int64_t first, const Tensor& own, const Tensor& slope, const Tensor& value) {
      nufft_plans(*nufft_)
          .template device_plan<T>(sky.device(), first)
          ->fused(own, nufft_->coords().cell_area(), data_on_gpu<T>(sky.device(), first), slope, value);
    };
    if (shared) {
      work(0, images.view({-1, npix, npix}), slopes.view({-1, npix, npix}), values.view({-1}));
    } else {
      for (std::int64_t channel = 0; channel < count; ++channel) {
        const auto slope = at::empty_like(slopes.select(1, channel), at::MemoryFormat::Contiguous);
        const auto value = at::empty({images.size(0)}, values.options());
        work(channel, images.select(1, channel).contiguous(), slope, value);
        slopes.select(1, channel).copy_(slope);
        values.select(1, channel).copy_(value);
      }
    }
    if (!in_place) {
      if (accumulate == Accumulate::overwrite) gradient.zero_();
      channels_->add(slopes.view(channel_shape(sky)), gradient);
    }
    return of_image_channels(values, sky);
  }

  /// Sums of data channels, (…, data channels), as those of image channels, (…, nchan).
  Tensor of_image_channels(const Tensor& values, const Tensor& sky) const {
    const auto shape = sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2));
    if (channels_->one_to_one()) return values.view(shape);
    auto sums = at::zeros(shape, values.options());
    auto pixels = sums.unsqueeze(-1).unsqueeze(-1);
    channels_->add(values.reshape(channel_shape(pixels)), pixels);
    return sums;
  }

  /// The sky's shape with data channels in the place of image channels.
  std::vector<std::int64_t> channel_shape(const Tensor& sky) const {
    auto shape = sky.sizes().vec();
    shape[shape.size() - 3] = channels_->data_channels();
    return shape;
  }

  /// The data of the channels of one plan.
  template <typename T>
  ops::NufftGpuData data_on_gpu(torch::Device device, std::int64_t first) {
    const std::lock_guard lock(mutex_);
    follow();
    constexpr auto dtype = c10::CppTypeToScalarType<T>::value;
    auto& own = on_devices_[{device.str(), first, dtype}];
    if (!own.weight.defined()) {
      const auto count = nufft_->baselines().shared() ? channels_->data_channels() : 1;
      own = nufft_plans(*nufft_)
                .template device_plan<T>(device, first)
                ->sorted(data_.narrow(0, first, count), weights_.narrow(0, first, count));
    }
    return own;
  }

  Nufft nufft_;
  std::shared_ptr<const losses::detail::ImageChannels> channels_;
  Tensor data_, weights_;
  std::mutex mutex_;
  torch::Device device_ = torch::kCPU;
  std::array<std::int64_t, 2> versions_{};  // of data_ and weights_, that were sorted
  Sorted<float> single_;
  Sorted<double> double_;
  std::map<std::tuple<std::string, std::int64_t, torch::Dtype>, ops::NufftGpuData> on_devices_;
};

}  // namespace mpol
