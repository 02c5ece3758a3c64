#include <mpol_cpp/ops/nufft/nufft_kernels.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::ops {

#define MPOL_DECLARE_NUFFT_KERNELS(isa)                    \
  namespace isa {                                          \
  template <typename T>                                    \
  NufftKernels<T> nufft_kernels(int width);                \
  extern template NufftKernels<float> nufft_kernels(int);  \
  extern template NufftKernels<double> nufft_kernels(int); \
  }

MPOL_DECLARE_NUFFT_KERNELS(portable)
#if defined(__x86_64__)
MPOL_DECLARE_NUFFT_KERNELS(avx2)
MPOL_DECLARE_NUFFT_KERNELS(avx512)
#endif

namespace {

template <typename T>
NufftKernels<T> compiled_nufft_kernels([[maybe_unused]] Isa isa, int width) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::nufft_kernels<T>(width);
  if (isa == Isa::avx2) return avx2::nufft_kernels<T>(width);
#endif
  return portable::nufft_kernels<T>(width);
}

}  // namespace

template <typename T>
NufftKernels<T> nufft_kernels(Isa isa, int width) {
  const auto kernels = compiled_nufft_kernels<T>(isa, width);
  if (kernels.degrid == nullptr) throw ValueError(fmt::format("no kernels were compiled for windows of {} cells", width));
  return kernels;
}

template NufftKernels<float> nufft_kernels(Isa, int);
template NufftKernels<double> nufft_kernels(Isa, int);

}  // namespace mpol::ops
