#include <mpol_cpp/fourier/nufft_plans.h>

#include <algorithm>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/ops/memory/huge_pages.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_check.h>
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_plan.h>
#include <mpol_cpp/ops/nufft/nufft_window.h>

namespace mpol {
namespace {

/// The shape of `values` with its last dimensions replaced.
std::vector<std::int64_t> with_last(const Tensor& values, std::int64_t dropped, at::IntArrayRef last) {
  auto shape = values.sizes().slice(0, static_cast<std::size_t>(values.dim() - dropped)).vec();
  shape.insert(shape.end(), last.begin(), last.end());
  return shape;
}

/// Pointers to the parts of the given indices in an array of parts of the given size.
template <typename T>
std::vector<T*> parts_at(T* array, std::int64_t size, const std::vector<std::int64_t>& indices) {
  std::vector<T*> parts;
  parts.reserve(indices.size());
  for (const auto index : indices) parts.push_back(array + index * size);
  return parts;
}

/// Whether a device is an accelerator other than CUDA's, whose images are transformed on the CPU.
bool has_no_kernels(torch::Device device) { return !device.is_cpu() && !device.is_cuda(); }

/// Samples [begin, end) of a channel in wavelengths.
ops::NufftCoordinates coordinates_of(const Baselines& baselines, std::int64_t channel, std::int64_t begin, std::int64_t end) {
  const auto [u, v] = baselines.block(channel, begin, end);
  const auto held = std::make_shared<const std::pair<Tensor, Tensor>>(u.contiguous(), v.contiguous());
  return {held->first.const_data_ptr<double>(), held->second.const_data_ptr<double>(), held};
}

thread_local auto kernels_of_scope = NufftKernelsOf::device;

}  // namespace

ScopedNufftKernels::ScopedNufftKernels(NufftKernelsOf kernels) : before_(std::exchange(kernels_of_scope, kernels)) {}
ScopedNufftKernels::~ScopedNufftKernels() { kernels_of_scope = before_; }

void check_nufft_fit(const GridCoords& coords, double max_abs_u, double max_abs_v) {
  const double limit = 0.5 / coords.dl(), largest = std::max(max_abs_u, max_abs_v);
  constexpr double rounding = 1e-12;
  if (largest <= limit * (1 + rounding)) return;
  throw DataError(
      fmt::format("baselines reach |{}| = {:.6g} lambda, but cell_size {:.6g}\" represents only {:.6g}: use cell_size "
                  "<= {:.4g}\"",
                  max_abs_u >= max_abs_v ? "u" : "v", largest, coords.cell_size(), limit, 0.5 / largest / units::arcsec));
}

NufftPlans::NufftPlans(const GridCoords& coords, Baselines baselines, std::int64_t nchan, NufftOptions options)
    : coords_(coords),
      baselines_(std::move(baselines)),
      nchan_(nchan),
      options_(options),
      kernels_(kernels_of_scope),
      single_(std::make_unique<Plans<float>>()),
      double_(std::make_unique<Plans<double>>()) {
  if (nchan < 1 || (!baselines_.shared() && baselines_.nchan() != nchan)) {
    throw ShapeError(fmt::format("baselines of {} channels for {} channels of visibilities", baselines_.nchan(), nchan));
  }
  check_nufft_fit(coords_, baselines_.max_abs_u(), baselines_.max_abs_v());
  ops::nufft_width<double>(options.tolerance);
}

NufftPlans::~NufftPlans() = default;

template <>
NufftPlans::Plans<float>& NufftPlans::plans() {
  return *single_;
}
template <>
NufftPlans::Plans<double>& NufftPlans::plans() {
  return *double_;
}

ops::NufftSettings NufftPlans::settings() const { return {coords_.npix(), coords_.dl(), options_.tolerance}; }

template <typename T>
const ops::NufftPlan<T>& NufftPlans::plan(std::int64_t channel) {
  const std::lock_guard lock(mutex_);
  auto& all = plans<T>().cpu_plans;
  const auto index = baselines_.shared() ? 0 : channel;
  all.resize(static_cast<std::size_t>(baselines_.shared() ? 1 : nchan_));
  auto& plan = all[static_cast<std::size_t>(index)];
  if (!plan) {
    plan = std::make_unique<ops::NufftPlan<T>>(
        settings(), [&](std::int64_t begin, std::int64_t end) { return coordinates_of(baselines_, index, begin, end); },
        baselines_.nvis(), baselines_.max_abs_u(), baselines_.max_abs_v());
  }
  return *plan;
}

template const ops::NufftPlan<float>& NufftPlans::plan(std::int64_t);
template const ops::NufftPlan<double>& NufftPlans::plan(std::int64_t);

bool NufftPlans::uses_gpu_kernels(torch::Device device) const {
  return device.is_cuda() || kernels_ == NufftKernelsOf::emulated_gpu;
}

template <typename T>
std::shared_ptr<ops::NufftGpuPlan<T>> NufftPlans::device_plan(torch::Device device, std::int64_t channel) {
  const std::lock_guard lock(mutex_);
  const auto index = baselines_.shared() ? 0 : channel;
  auto& plan = plans<T>().gpu_plans[{device.str(), index}];
  if (!plan) {
    if (!device.is_cpu() && index == 0) ops::check_nufft_device<T>(device, options_.tolerance);
    const auto [u, v] = baselines_.channel(index);
    const auto columns = u.contiguous(), rows = v.contiguous();
    ops::NufftGpuSettings device_settings;
    device_settings.transform = settings();
    device_settings.device = device;
    plan = std::make_shared<ops::NufftGpuPlan<T>>(device_settings, columns.template const_data_ptr<double>(),
                                                  rows.template const_data_ptr<double>(), baselines_.nvis(),
                                                  baselines_.max_abs_u(), baselines_.max_abs_v());
  }
  return plan;
}

template std::shared_ptr<ops::NufftGpuPlan<float>> NufftPlans::device_plan(torch::Device, std::int64_t);
template std::shared_ptr<ops::NufftGpuPlan<double>> NufftPlans::device_plan(torch::Device, std::int64_t);

void NufftPlans::prepare(torch::Device device, torch::Dtype dtype) {
  if (!device.is_cpu() && !device.is_cuda()) return;
  const auto make = [&]<typename T>(T, std::int64_t channel) {
    if (uses_gpu_kernels(device)) device_plan<T>(device, channel);
    else plan<T>(channel);
  };
  const auto sets = baselines_.shared() ? 1 : nchan_;
  for (std::int64_t channel = 0; channel < sets; ++channel) {
    if (dtype == torch::kFloat32) make(float{}, channel);
    else make(double{}, channel);
  }
}

void NufftPlans::keep_for(c10::Stream stream) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [place, plan] : single_->gpu_plans) plan->keep_for(stream);
  for (const auto& [place, plan] : double_->gpu_plans) plan->keep_for(stream);
}

void NufftPlans::keep_device_plans(torch::Device device) {
  const std::lock_guard lock(mutex_);
  const auto is_of_others = [name = device.str()](const auto& each) { return each.first.first != name; };
  std::erase_if(single_->gpu_plans, is_of_others);
  std::erase_if(double_->gpu_plans, is_of_others);
}

void NufftPlans::for_each_set(
    std::int64_t images, const std::function<void(std::int64_t channel, const std::vector<std::int64_t>& images)>& use) const {
  const auto sets = baselines_.shared() ? 1 : nchan_;
  for (std::int64_t channel = 0; channel < sets; ++channel) {
    std::vector<std::int64_t> own;
    own.reserve(static_cast<std::size_t>(images / sets));
    for (auto i = channel; i < images; i += sets) own.push_back(i);
    use(channel, own);
  }
}

Tensor NufftPlans::type2(const Tensor& sky) {
  if (has_no_kernels(sky.device())) return type2(sky.to(torch::kCPU)).to(sky.device());
  if (uses_gpu_kernels(sky.device())) {
    return sky.scalar_type() == torch::kFloat32 ? type2_on_gpu<float>(sky) : type2_on_gpu<double>(sky);
  }
  const auto npix = coords_.npix(), nvis = baselines_.nvis();
  const auto image = sky.contiguous();
  auto visibilities = at::empty(with_last(sky, 2, {nvis}), sky.options().dtype(c10::toComplexType(sky.scalar_type())));
  ops::prefer_huge_pages(visibilities.mutable_data_ptr(), visibilities.nbytes());
  const auto transform = [&]<typename T>(T) {
    const auto* from = image.const_data_ptr<T>();
    auto* to = reinterpret_cast<std::complex<T>*>(visibilities.mutable_data_ptr<c10::complex<T>>());
    for_each_set(image.numel() / (npix * npix), [&](std::int64_t channel, const std::vector<std::int64_t>& images) {
      plan<T>(channel).type2(parts_at(from, npix * npix, images), coords_.cell_area(), parts_at(to, nvis, images));
    });
  };
  if (sky.scalar_type() == torch::kFloat32) transform(float{});
  else transform(double{});
  return visibilities;
}

Tensor NufftPlans::type1(const Tensor& visibilities) {
  if (has_no_kernels(visibilities.device())) return type1(visibilities.to(torch::kCPU)).to(visibilities.device());
  if (uses_gpu_kernels(visibilities.device())) {
    return visibilities.scalar_type() == torch::kComplexFloat ? type1_on_gpu<float>(visibilities)
                                                              : type1_on_gpu<double>(visibilities);
  }
  const auto npix = coords_.npix(), nvis = baselines_.nvis();
  const auto values = visibilities.resolve_conj().contiguous();
  auto image = at::empty(with_last(visibilities, 1, {npix, npix}),
                         visibilities.options().dtype(c10::toRealValueType(visibilities.scalar_type())));
  const auto transform = [&]<typename T>(T) {
    const auto* from = reinterpret_cast<const std::complex<T>*>(values.const_data_ptr<c10::complex<T>>());
    auto* to = image.mutable_data_ptr<T>();
    for_each_set(image.numel() / (npix * npix), [&](std::int64_t channel, const std::vector<std::int64_t>& images) {
      plan<T>(channel).type1(parts_at(from, nvis, images), coords_.cell_area(), parts_at(to, npix * npix, images),
                             Accumulate::overwrite);
    });
  };
  if (visibilities.scalar_type() == torch::kComplexFloat) transform(float{});
  else transform(double{});
  return image;
}

/// Images of all problems and channels are one stack where they share their baselines.
template <typename T>
Tensor NufftPlans::type2_on_gpu(const Tensor& sky) {
  const auto npix = coords_.npix(), nvis = baselines_.nvis();
  const auto images = sky.contiguous().view({-1, nchan_, npix, npix});
  auto visibilities = at::empty(with_last(sky, 2, {nvis}), sky.options().dtype(c10::toComplexType(sky.scalar_type())));
  const auto values = visibilities.view({-1, nchan_, nvis});
  if (baselines_.shared()) {
    device_plan<T>(sky.device(), 0)->type2(images.view({-1, npix, npix}), coords_.cell_area(), values.view({-1, nvis}));
    return visibilities;
  }
  for (std::int64_t channel = 0; channel < nchan_; ++channel) {
    const auto own = at::empty_like(values.select(1, channel), at::MemoryFormat::Contiguous);
    device_plan<T>(sky.device(), channel)->type2(images.select(1, channel).contiguous(), coords_.cell_area(), own);
    values.select(1, channel).copy_(own);
  }
  return visibilities;
}

template <typename T>
Tensor NufftPlans::type1_on_gpu(const Tensor& visibilities) {
  const auto npix = coords_.npix(), nvis = baselines_.nvis();
  const auto values = visibilities.resolve_conj().contiguous().view({-1, nchan_, nvis});
  auto image = at::empty(with_last(visibilities, 1, {npix, npix}),
                         visibilities.options().dtype(c10::toRealValueType(visibilities.scalar_type())));
  const auto images = image.view({-1, nchan_, npix, npix});
  if (baselines_.shared()) {
    device_plan<T>(visibilities.device(), 0)->type1(values.view({-1, nvis}), coords_.cell_area(), images.view({-1, npix, npix}));
    return image;
  }
  for (std::int64_t channel = 0; channel < nchan_; ++channel) {
    const auto own = at::empty_like(images.select(1, channel), at::MemoryFormat::Contiguous);
    device_plan<T>(visibilities.device(), channel)->type1(values.select(1, channel).contiguous(), coords_.cell_area(), own);
    images.select(1, channel).copy_(own);
  }
  return image;
}

template <typename T>
std::int64_t NufftPlans::Plans<T>::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& plan : cpu_plans) bytes += plan ? plan->memory_bytes() : 0;
  for (const auto& [place, plan] : gpu_plans) bytes += plan ? plan->memory_bytes() : 0;
  return bytes;
}

std::int64_t NufftPlans::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return single_->memory_bytes() + double_->memory_bytes();
}

}  // namespace mpol
