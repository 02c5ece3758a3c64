#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_check.h>

#include <cmath>
#include <complex>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/view_as_complex.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_plan.h>
#include <mpol_cpp/ops/nufft/nufft_window.h>

namespace mpol::ops {
namespace {

/// Values that no symmetry hides, in [-1, 1].
template <typename T>
Tensor quasi_random(at::IntArrayRef shape, double step) {
  auto values = at::empty(shape, c10::CppTypeToScalarType<T>::value);
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    values.template mutable_data_ptr<T>()[i] = static_cast<T>(2 * std::fmod(static_cast<double>(i + 1) * step, 1.0) - 1);
  }
  return values;
}

double largest_difference(const Tensor& value, const Tensor& reference) {
  return ((value.cpu() - reference).abs().max() / reference.abs().max()).template item<double>();
}

}  // namespace

template <typename T>
double nufft_device_error(torch::Device device, double tolerance) {
  const torch::NoGradGuard no_grad;
  constexpr std::int64_t npix = 32, count = 1500;
  constexpr double pixel = 1, scale = 0.5;
  const auto u = quasi_random<double>({count}, 0.7548776662466927) * (0.5 / pixel);
  const auto v = quasi_random<double>({count}, 0.5698402909980532) * (0.5 / pixel);
  const auto* columns = u.template const_data_ptr<double>();
  const auto* rows = v.template const_data_ptr<double>();
  NufftGpuSettings settings;
  settings.transform = {npix, pixel, tolerance};
  settings.device = device;
  NufftGpuPlan<T> plan(settings, columns, rows, count, 0.5 / pixel, 0.5 / pixel);
  const NufftPlan<T> reference(settings.transform, columns, rows, count, 0.5 / pixel, 0.5 / pixel);

  const auto image = quasi_random<T>({1, npix, npix}, 0.6180339887498949);
  const auto data = at::view_as_complex(quasi_random<T>({1, count, 2}, 0.4142135623730951));
  const auto weights = quasi_random<T>({1, count}, 0.7320508075688772).abs();
  const auto image_there = image.to(device), data_there = data.to(device);
  auto visibilities = at::empty_like(data_there), gridded = at::empty_like(image_there), gradient = at::empty_like(image_there);
  auto value = at::empty({1}, image_there.options().dtype(torch::kFloat64));
  plan.type2(image_there, scale, visibilities);
  plan.type1(data_there, scale, gridded);
  plan.fused(image_there, scale, plan.sorted(data, weights), gradient, value);

  auto expected_visibilities = at::empty_like(data), expected_data = data.to(torch::kComplexDouble);
  auto expected_gridded = at::empty_like(image), expected_gradient = at::empty_like(image);
  const auto values = [](const Tensor& tensor) {
    return reinterpret_cast<std::complex<T>*>(tensor.template mutable_data_ptr<c10::complex<T>>());
  };
  reference.type2(image.template const_data_ptr<T>(), scale, values(expected_visibilities));
  reference.type1(values(data), scale, expected_gridded.template mutable_data_ptr<T>(), Accumulate::overwrite);
  const auto sorted = reference.sorted(
      reinterpret_cast<const std::complex<double>*>(expected_data.template const_data_ptr<c10::complex<double>>()),
      weights.to(torch::kFloat64).template const_data_ptr<double>());
  const double chi_squared = reference.fused(image.template const_data_ptr<T>(), scale, *sorted,
                                             expected_gradient.template mutable_data_ptr<T>(), Accumulate::overwrite);
  double largest = 0;
  for (const double error :
       {largest_difference(visibilities, expected_visibilities), largest_difference(gridded, expected_gridded),
        largest_difference(gradient, expected_gradient), std::abs(value.template item<double>() / chi_squared - 1)}) {
    if (!(error <= largest)) largest = error;  // NaN stays
    if (std::isnan(error)) break;
  }
  return largest;
}

template <typename T>
void check_nufft_device(torch::Device device, double tolerance) {
  // Once for each kind of kernel in a process: batches of visibilities have a plan each.
  static std::mutex mutex;
  static std::set<std::pair<std::string, int>> passed;
  const std::pair key(device.str(), nufft_width<T>(tolerance));
  const std::lock_guard lock(mutex);
  if (passed.contains(key)) return;
  const double bound = 10 * tolerance + (sizeof(T) == 4 ? 1e-5 : 1e-12), error = nufft_device_error<T>(device, tolerance);
  if (error <= bound) {
    passed.insert(key);
    return;
  }
  throw DeviceError(
      fmt::format("nonuniform transforms on {} differ from those of the CPU by {:.1e} (at most {:.0e} is expected): "
                  "use the CPU",
                  device.str(), error, bound));
}

template double nufft_device_error<float>(torch::Device, double);
template double nufft_device_error<double>(torch::Device, double);
template void check_nufft_device<float>(torch::Device, double);
template void check_nufft_device<double>(torch::Device, double);

}  // namespace mpol::ops
