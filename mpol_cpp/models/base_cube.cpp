#include <mpol_cpp/models/base_cube.h>

#include <cmath>
#include <limits>

#include <ATen/ops/expm1.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

Tensor masked(const Tensor& intensities, const Tensor& mask) {
  return mask.defined() ? intensities * mask.to(intensities.options().requires_grad(false)) : intensities;
}

}  // namespace

PixelSign natural_sign(Stokes stokes) { return is_intensity(stokes) ? PixelSign::positive : PixelSign::either; }

PixelMapping softplus_mapping(const Tensor& mask) {
  constexpr double threshold = 20.0;  // at::softplus is the identity beyond it
  const auto forward = [mask](const Tensor& base) { return masked(at::softplus(base), mask); };
  return {mask.defined() ? "softplus with a mask" : "softplus", forward, [](const Tensor& intensity) {
            return at::where(intensity > threshold, intensity, intensity + at::log(-at::expm1(-intensity)));
          }};
}

PixelMapping nonnegative_mapping(const Tensor& mask) {
  const auto intensity = [mask](const Tensor& base) { return masked(base.clamp_min(0), mask); };
  return {mask.defined() ? "nonnegative with a mask" : "nonnegative", intensity, [](const Tensor& image) { return image; }};
}

PixelMapping either_sign_mapping(const Tensor& mask) {
  return {.name = mask.defined() ? "either sign with a mask" : "either sign",
          .forward = [mask](const Tensor& base) { return masked(base.clone(), mask); },
          .inverse = [](const Tensor& image) { return image; },
          .sign = PixelSign::either};
}

namespace {

torch::Dtype dtype_of_base(const BaseCubeOptions& options) {
  const auto& given = options.base_cube();
  const auto dtype = options.dtype().value_or(given.defined() ? given.scalar_type() : torch::kFloat32);
  if (dtype == torch::kFloat32 || dtype == torch::kFloat64) return dtype;
  throw ValueError(fmt::format("base pixels would be {}; they are float32 or float64: set .dtype() or cast the base cube",
                               c10::toString(dtype)));
}

void check_start(double start, torch::Dtype dtype) {
  const double largest = dtype == torch::kFloat32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  if (std::abs(start) <= largest) return;
  throw ValueError(fmt::format("start is {}; {} holds numbers of up to {:.3g}: choose a smaller one", start,
                               dtype == torch::kFloat32 ? "float32" : "float64", largest));
}

}  // namespace

BaseCubeImpl::BaseCubeImpl(BaseCubeOptions options) : options_(std::move(options)) {
  if (!options_.pixel_mapping().forward) {
    throw ValueError(fmt::format("the pixel mapping '{}' has no function forward: give one, or take softplus_mapping()",
                                 options_.pixel_mapping().name));
  }
  if (!std::isfinite(options_.start())) throw ValueError(fmt::format("start is {}; it must be finite", options_.start()));
  reset();
}

void BaseCubeImpl::reset() {
  const auto dtype = dtype_of_base(options_);
  const auto npix = options_.coords().npix();
  const auto& given = options_.base_cube();
  if (!given.defined()) {
    if (options_.nchan() < 1) throw ValueError(fmt::format("nchan is {}; it must be at least 1", options_.nchan()));
    check_start(options_.start(), dtype);
    base_cube_ = at::full({options_.nchan(), npix, npix}, options_.start(), dtype);
  } else {
    if (given.dim() < 3 || given.size(-1) != npix || given.size(-2) != npix) {
      throw ShapeError(fmt::format("base_cube has shape {}; it must be (…, nchan, {}, {})", given.sizes().vec(), npix, npix));
    }
    base_cube_ = given.detach().to(dtype).clone();
    if (!base_cube_.is_meta() && !base_cube_.isfinite().all().item<bool>()) {
      throw ValueError("base_cube has values that are not finite; each base pixel must be a number");
    }
  }
  register_parameter("base_cube", base_cube_);
}

Tensor BaseCubeImpl::forward() const { return options_.pixel_mapping().forward(base_cube_); }

}  // namespace mpol
