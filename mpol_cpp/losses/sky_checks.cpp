#include <mpol_cpp/losses/sky_checks.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::losses::detail {

void check_sky_shape(const Tensor& sky, std::int64_t nchan, std::int64_t npix) {
  if (sky.dim() < 3 || sky.size(-3) != nchan || sky.size(-2) != npix || sky.size(-1) != npix) {
    throw ShapeError(fmt::format("the image has shape {}; the data need (…, {}, {}, {})", sky.sizes().vec(), nchan, npix, npix));
  }
}

void check_sky_of_cpu(const Tensor& sky, std::int64_t nchan, std::int64_t npix, std::string_view likelihood) {
  check_sky_shape(sky, nchan, npix);
  if (!sky.device().is_cpu()) {
    throw DeviceError(fmt::format("the image is on {}; the {} likelihood runs on the CPU: move it with .to(cpu)",
                                  sky.device().str(), likelihood));
  }
  if (sky.scalar_type() != torch::kFloat32 && sky.scalar_type() != torch::kFloat64) {
    throw ShapeError(fmt::format("the image is {}; cast it to float32 or float64", c10::toString(sky.scalar_type())));
  }
}

}  // namespace mpol::losses::detail
