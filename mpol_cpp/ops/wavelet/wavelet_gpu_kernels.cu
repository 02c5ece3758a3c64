#include <mpol_cpp/ops/gpu/launch_body.h>
#include <mpol_cpp/ops/wavelet/wavelet_gpu_launch.h>

namespace mpol::ops {

template void launch_on_gpu(WaveletKernel, const WaveletArrays<float>&, void*);
template void launch_on_gpu(WaveletKernel, const WaveletArrays<double>&, void*);

}  // namespace mpol::ops
