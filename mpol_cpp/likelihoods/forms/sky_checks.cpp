#include <mpol_cpp/likelihoods/forms/sky_checks.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/streams.h>

namespace mpol::losses::detail {

void check_sky_shape(const Tensor& sky, std::int64_t nchan, std::int64_t npix) {
  if (sky.dim() < 3 || sky.size(-3) != nchan || sky.size(-2) != npix || sky.size(-1) != npix) {
    throw ShapeError(fmt::format("the image has shape {}; the data need (…, {}, {}, {})", sky.sizes().vec(), nchan, npix, npix));
  }
}

void check_gradient(const Tensor& sky, const Tensor& gradient) {
  if (!gradient.defined()) {
    throw ShapeError(fmt::format(
        "the gradient is an undefined tensor; give one like the image, torch::empty_like(sky), of shape {}", sky.sizes().vec()));
  }
  if (gradient.sizes() != sky.sizes() || gradient.scalar_type() != sky.scalar_type()) {
    throw ShapeError(fmt::format("the gradient has shape {} as {}, the image {} as {}: give one like the image",
                                 gradient.sizes().vec(), c10::toString(gradient.scalar_type()), sky.sizes().vec(),
                                 c10::toString(sky.scalar_type())));
  }
  if (gradient.device() != sky.device()) {
    throw DeviceError(fmt::format("the gradient is on {}, the image on {}: give one like the image", gradient.device().str(),
                                  sky.device().str()));
  }
}

void check_sky_on(torch::Device device, const Tensor& sky, std::int64_t nchan, std::int64_t npix, std::string_view likelihood) {
  check_sky_shape(sky, nchan, npix);
  if (!mpol::detail::can_compute(device)) {
    throw DeviceError(
        fmt::format("the {} likelihood is on {}; it runs on the CPU, a CUDA device or another accelerator: move it there",
                    likelihood, device.str()));
  }
  if (sky.device() != device) {
    throw DeviceError(fmt::format("the image is on {}, the {} likelihood on {}: move one to the other with .to(device)",
                                  sky.device().str(), likelihood, device.str()));
  }
  if (sky.scalar_type() != torch::kFloat32 && sky.scalar_type() != torch::kFloat64) {
    throw ShapeError(fmt::format("the image is {}; cast it to float32 or float64", c10::toString(sky.scalar_type())));
  }
}

}  // namespace mpol::losses::detail
