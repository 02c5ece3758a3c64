#include <mpol_cpp/images/base_cube.h>

#include <ATen/ops/expm1.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

PixelMapping softplus_mapping() {
  constexpr double threshold = 20.0;  // at::softplus is the identity beyond it
  return {"softplus", [](const Tensor& base) { return at::softplus(base); },
          [](const Tensor& intensity) {
            return at::where(intensity > threshold, intensity, intensity + at::log(-at::expm1(-intensity)));
          }};
}

BaseCubeImpl::BaseCubeImpl(BaseCubeOptions options) : options_(std::move(options)) { reset(); }

void BaseCubeImpl::reset() {
  const auto npix = options_.coords().npix();
  const auto& given = options_.base_cube();
  if (!given.defined()) {
    if (options_.nchan() < 1) throw ValueError(fmt::format("nchan is {}; it must be at least 1", options_.nchan()));
    base_cube_ = at::full({options_.nchan(), npix, npix}, options_.start(), options_.dtype());
  } else {
    if (given.dim() < 3 || given.size(-1) != npix || given.size(-2) != npix) {
      throw ShapeError(fmt::format("base_cube has shape {}; it must be (…, nchan, {}, {})", given.sizes().vec(), npix, npix));
    }
    base_cube_ = given.detach().to(options_.dtype()).clone();
  }
  register_parameter("base_cube", base_cube_);
}

Tensor BaseCubeImpl::forward() const { return options_.pixel_mapping().forward(base_cube_); }

}  // namespace mpol
