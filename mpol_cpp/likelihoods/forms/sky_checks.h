#pragma once

#include <cstdint>
#include <string_view>

#include <torch/types.h>

namespace mpol::losses::detail {

using torch::Tensor;

/// @throws ShapeError unless the sky is (…, nchan, npix, npix)
void check_sky_shape(const Tensor& sky, std::int64_t nchan, std::int64_t npix);

/// @throws ShapeError, DeviceError unless the gradient is a tensor like the sky, into which value_and_gradient can write
void check_gradient(const Tensor& sky, const Tensor& gradient);

/// For a likelihood whose tensors are on a device, the CPU or a GPU.
/// @throws DeviceError, ShapeError when the sky is elsewhere or not of real numbers
void check_sky_on(torch::Device device, const Tensor& sky, std::int64_t nchan, std::int64_t npix, std::string_view likelihood);

}  // namespace mpol::losses::detail
