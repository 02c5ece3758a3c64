#include <mpol_cpp/ops/fused_kernels.h>

namespace mpol::ops {

#define MPOL_DECLARE_KERNELS(isa)                       \
  namespace isa {                                       \
  template <typename T>                                 \
  FusedKernels<T> fused_kernels();                      \
  extern template FusedKernels<float> fused_kernels();  \
  extern template FusedKernels<double> fused_kernels(); \
  }

MPOL_DECLARE_KERNELS(portable)
#if defined(__x86_64__)
MPOL_DECLARE_KERNELS(avx2)
MPOL_DECLARE_KERNELS(avx512)
#endif

template <typename T>
FusedKernels<T> fused_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::avx512) return avx512::fused_kernels<T>();
  if (isa == Isa::avx2) return avx2::fused_kernels<T>();
#endif
  return portable::fused_kernels<T>();
}

template FusedKernels<float> fused_kernels(Isa);
template FusedKernels<double> fused_kernels(Isa);

}  // namespace mpol::ops
