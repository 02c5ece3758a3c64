#include <mpol_cpp/ops/nufft/nufft_kernels.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {

MPOL_IN_EACH_ISA(template <typename T> NufftKernels<T> nufft_kernels(int width);
                 extern template NufftKernels<float> nufft_kernels(int); extern template NufftKernels<double> nufft_kernels(int);)

template <typename T>
NufftKernels<T> nufft_kernels(Isa isa, int width) {
  const auto kernels = MPOL_OF_ISA(isa, nufft_kernels<T>(width));
  if (kernels.degrid == nullptr) throw ValueError(fmt::format("no kernels were compiled for windows of {} cells", width));
  return kernels;
}

template NufftKernels<float> nufft_kernels(Isa, int);
template NufftKernels<double> nufft_kernels(Isa, int);

}  // namespace mpol::ops
