#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/proximal/gpu/pixel_sums_launch.h>
#include <mpol_cpp/ops/proximal/gpu/pogm_launch.h>

namespace mpol::ops {

template void launch_on_gpu(PogmKernel, const PogmArrays<float>&, void*);
template void launch_on_gpu(PogmKernel, const PogmArrays<double>&, void*);
template void launch_on_gpu(PixelSumsKernel, const PixelSumsArrays<float>&, void*);
template void launch_on_gpu(PixelSumsKernel, const PixelSumsArrays<double>&, void*);

}  // namespace mpol::ops
