#include <mpol_cpp/models/hann_conv_cube.h>

#include <mpol_cpp/ops/hann/hann.h>

namespace mpol {

Tensor HannConvCubeImpl::forward(const Tensor& sky) const { return ops::hann(sky); }

}  // namespace mpol
