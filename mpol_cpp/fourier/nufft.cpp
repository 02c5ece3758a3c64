#include <mpol_cpp/fourier/nufft.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/ops/nufft_window.h>

namespace mpol {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using NufftPlansPtr = c10::intrusive_ptr<NufftPlans>;

Tensor apply_type2(const Tensor& sky, const NufftPlansPtr& plans);
Tensor apply_type1(const Tensor& visibilities, const NufftPlansPtr& plans);

NufftPlansPtr plans_of(AutogradContext* context) {
  return c10::static_intrusive_pointer_cast<NufftPlans>(context->saved_data["plans"].toCapsule());
}

struct Type2 : torch::autograd::Function<Type2> {
  static Tensor forward(AutogradContext* context, const Tensor& sky, const NufftPlansPtr& plans) {
    context->saved_data["plans"] = c10::IValue::make_capsule(plans);
    return plans->type2(sky);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {apply_type1(gradients[0], plans_of(context)), Tensor()};
  }
};

struct Type1 : torch::autograd::Function<Type1> {
  static Tensor forward(AutogradContext* context, const Tensor& visibilities, const NufftPlansPtr& plans) {
    context->saved_data["plans"] = c10::IValue::make_capsule(plans);
    return plans->type1(visibilities);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {apply_type2(gradients[0], plans_of(context)), Tensor()};
  }
};

Tensor apply_type2(const Tensor& sky, const NufftPlansPtr& plans) { return Type2::apply(sky, plans); }
Tensor apply_type1(const Tensor& visibilities, const NufftPlansPtr& plans) { return Type1::apply(visibilities, plans); }

/// The last dimensions must be those given, on the CPU.
void check_nufft_input(const Tensor& values, at::IntArrayRef last, const char* what) {
  if (!values.device().is_cpu()) {
    throw DeviceError(fmt::format("the {} on {}: the nonuniform transform runs on the CPU; move them with .to(cpu)", what,
                                  values.device().str()));
  }
  const auto dims = static_cast<std::int64_t>(last.size());
  if (values.dim() < dims || values.sizes().slice(static_cast<std::size_t>(values.dim() - dims)) != last) {
    throw ShapeError(fmt::format("the {} of shape {}; expected (…, {})", what, values.sizes().vec(), fmt::join(last, ", ")));
  }
}

/// Pointers to the parts of the given indices in an array of parts of the given size.
template <typename T>
std::vector<T*> parts_at(T* array, std::int64_t size, const std::vector<std::int64_t>& indices) {
  std::vector<T*> parts;
  parts.reserve(indices.size());
  for (const auto index : indices) parts.push_back(array + index * size);
  return parts;
}

std::vector<std::int64_t> with_last(const Tensor& values, std::int64_t dropped, at::IntArrayRef last) {
  auto shape = values.sizes().slice(0, static_cast<std::size_t>(values.dim() - dropped)).vec();
  shape.insert(shape.end(), last.begin(), last.end());
  return shape;
}

}  // namespace

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
    : coords_(coords), baselines_(std::move(baselines)), nchan_(nchan), options_(options) {
  if (nchan < 1 || (!baselines_.shared() && baselines_.nchan() != nchan)) {
    throw ShapeError(fmt::format("baselines of {} channels for {} channels of visibilities", baselines_.nchan(), nchan));
  }
  check_nufft_fit(coords_, baselines_.max_abs_u(), baselines_.max_abs_v());
  ops::nufft_width<double>(options.tolerance);
}

template <>
NufftPlans::Plans<float>& NufftPlans::plans() {
  return single_;
}
template <>
NufftPlans::Plans<double>& NufftPlans::plans() {
  return double_;
}

template <typename T>
const ops::NufftPlan<T>& NufftPlans::plan(std::int64_t channel) {
  const std::lock_guard lock(mutex_);
  auto& all = plans<T>();
  const auto index = baselines_.shared() ? 0 : channel;
  all.resize(static_cast<std::size_t>(baselines_.shared() ? 1 : nchan_));
  auto& plan = all[static_cast<std::size_t>(index)];
  if (!plan) {
    const auto [u, v] = baselines_.channel(index);
    const auto columns = u.contiguous(), rows = v.contiguous();
    plan = std::make_unique<ops::NufftPlan<T>>(ops::NufftSettings{coords_.npix(), coords_.dl(), options_.tolerance},
                                               columns.template const_data_ptr<double>(), rows.template const_data_ptr<double>(),
                                               baselines_.nvis(), baselines_.max_abs_u(), baselines_.max_abs_v());
  }
  return *plan;
}

template const ops::NufftPlan<float>& NufftPlans::plan(std::int64_t);
template const ops::NufftPlan<double>& NufftPlans::plan(std::int64_t);

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
  const auto npix = coords_.npix(), nvis = baselines_.nvis();
  const auto image = sky.contiguous();
  auto visibilities = at::empty(with_last(sky, 2, {nvis}), sky.options().dtype(c10::toComplexType(sky.scalar_type())));
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

std::int64_t NufftPlans::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  for (const auto& plan : single_) bytes += plan ? plan->memory_bytes() : 0;
  for (const auto& plan : double_) bytes += plan ? plan->memory_bytes() : 0;
  return bytes;
}

NufftImpl::NufftImpl(const GridCoords& coords, Baselines baselines, std::int64_t nchan, NufftOptions options)
    : plans_(c10::make_intrusive<NufftPlans>(coords, std::move(baselines), nchan, options)) {}

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
