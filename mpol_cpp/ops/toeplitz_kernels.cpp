#include <mpol_cpp/ops/toeplitz_kernels.h>

namespace mpol::ops {

#define MPOL_DECLARE_TOEPLITZ_KERNELS(isa)                    \
  namespace isa {                                             \
  template <typename T>                                       \
  ToeplitzKernels<T> toeplitz_kernels();                      \
  extern template ToeplitzKernels<float> toeplitz_kernels();  \
  extern template ToeplitzKernels<double> toeplitz_kernels(); \
  }

MPOL_DECLARE_TOEPLITZ_KERNELS(portable)
#if defined(__x86_64__)
MPOL_DECLARE_TOEPLITZ_KERNELS(avx2)
MPOL_DECLARE_TOEPLITZ_KERNELS(avx512)
#endif

template <typename T>
ToeplitzKernels<T> toeplitz_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::toeplitz_kernels<T>();
  if (isa == Isa::avx2) return avx2::toeplitz_kernels<T>();
#endif
  return portable::toeplitz_kernels<T>();
}

template ToeplitzKernels<float> toeplitz_kernels(Isa);
template ToeplitzKernels<double> toeplitz_kernels(Isa);

}  // namespace mpol::ops
