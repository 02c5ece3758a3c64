#include <mpol_cpp/ops/wavelet/wavelets_on_gpu.h>

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/wavelet/daubechies.h>
#include <mpol_cpp/ops/wavelet/wavelet_gpu_launch.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t largest_extent = 65534;

/// @param images  (…, rows, columns), of one transform
template <typename T>
WaveletArrays<T> arrays_for(const Tensor& images, std::int64_t count, const std::vector<std::int64_t>& moments) {
  if (moments.size() > most_transforms) {
    throw ValueError(fmt::format("{} wavelet transforms at once: at most {}", moments.size(), most_transforms));
  }
  if (images.size(-2) > largest_extent || images.size(-1) > largest_extent) {
    throw ValueError(fmt::format("an image {}: a GPU's wavelet transforms take up to {} rows and columns", images.sizes().vec(),
                                 largest_extent));
  }
  WaveletArrays<T> arrays{};
  arrays.transforms = static_cast<std::int32_t>(moments.size());
  arrays.images = count;
  arrays.rows = static_cast<std::uint32_t>(images.size(-2));
  arrays.columns = static_cast<std::uint32_t>(images.size(-1));
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const auto& filters = daubechies_filters(moments[i]);
    arrays.taps[i] = static_cast<int>(filters.low.size());
    std::transform(filters.low.begin(), filters.low.end(), arrays.low[i], [](double tap) { return static_cast<T>(tap); });
    std::transform(filters.high.begin(), filters.high.end(), arrays.high[i], [](double tap) { return static_cast<T>(tap); });
  }
  return arrays;
}

template <typename T>
void run(WaveletArrays<T>& arrays, WaveletKernel kernel, const Tensor& source, const Tensor& target) {
  arrays.source = device_array<const T>(source);
  arrays.target = device_array<T>(target);
  run_kernel(kernel, arrays, target.device(), EmulatedOrder::ascending);
}

template <typename T>
void set_level(WaveletArrays<T>& arrays, std::int64_t level) {
  arrays.height = arrays.rows >> level;
  arrays.width = arrays.columns >> level;
}

template <typename T>
Tensor analyzed(const Tensor& images, const std::vector<std::int64_t>& moments, std::int64_t levels) {
  const auto x = images.contiguous();
  auto arrays = arrays_for<T>(x, x.numel() / (x.size(-2) * x.size(-1)), moments);
  auto shape = x.sizes().vec();
  shape.insert(shape.begin(), static_cast<std::int64_t>(moments.size()));
  auto y = at::empty(shape, x.options());
  const auto halves = at::empty_like(y);
  for (std::int64_t level = 0; level < levels; ++level) {
    set_level(arrays, level);
    arrays.shared_source = level == 0;
    run(arrays, WaveletKernel::split_rows, level == 0 ? x : y, halves);
    arrays.shared_source = false;
    run(arrays, WaveletKernel::split_columns, halves, y);
  }
  return y;
}

template <typename T>
Tensor synthesized(const Tensor& coefficients, const std::vector<std::int64_t>& moments, std::int64_t levels) {
  const auto y = coefficients.clone(at::MemoryFormat::Contiguous);
  auto arrays = arrays_for<T>(y[0], y[0].numel() / (y.size(-2) * y.size(-1)), moments);
  const auto halves = at::empty_like(y);
  auto x = at::empty_like(y[0]);
  for (std::int64_t level = levels; level-- > 0;) {
    set_level(arrays, level);
    run(arrays, WaveletKernel::join_columns, y, halves);
    if (level > 0) run(arrays, WaveletKernel::join_rows, halves, y);
    else run(arrays, WaveletKernel::join_and_sum, halves, x);
  }
  return x;
}

}  // namespace

Tensor wavelet_analysis_on_gpu(const Tensor& images, const std::vector<std::int64_t>& moments, std::int64_t levels) {
  const c10::DeviceGuard guard(images.device());
  return images.scalar_type() == torch::kFloat64 ? analyzed<double>(images, moments, levels)
                                                 : analyzed<float>(images, moments, levels);
}

Tensor wavelet_synthesis_on_gpu(const Tensor& coefficients, const std::vector<std::int64_t>& moments, std::int64_t levels) {
  const c10::DeviceGuard guard(coefficients.device());
  return coefficients.scalar_type() == torch::kFloat64 ? synthesized<double>(coefficients, moments, levels)
                                                       : synthesized<float>(coefficients, moments, levels);
}

}  // namespace mpol::ops
