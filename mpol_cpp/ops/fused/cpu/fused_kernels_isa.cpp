// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/fused/cpu/fused_kernels.h>
#include <mpol_cpp/ops/simd/math.h>
#include <mpol_cpp/ops/fused/cpu/fused_row_kernels.h>
#include <mpol_cpp/ops/fused/cpu/fused_spectrum_kernels.h>
#include <mpol_cpp/ops/fused/cpu/fused_update_kernels.h>

namespace mpol::ops::MPOL_ISA {
namespace {

template <typename T, typename Function>
MPOL_INLINE void apply(const T* x, T* y, std::int64_t n, Function function) {
  std::int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) store<T>(y + j, function(load<T>(x + j)));
  if (j < n) store_part<T>(y + j, function(load_part<T>(x + j, n - j)), n - j);
}

template <typename T>
typename FusedKernels<T>::Functions functions() {
  using V = Vector<T>;
  return {
      [](const T* x, T* y, std::int64_t n) { apply<T>(x, y, n, [](V v) { return exp_of_negative<T>(-magnitude<T>(v)); }); },
      [](const T* x, T* y, std::int64_t n) { apply<T>(x, y, n, [](V v) { return log1p_of_fraction<T>(v); }); },
      [](const T* x, T* y, std::int64_t n) { apply<T>(x, y, n, [](V v) { return logarithm<T>(v); }); },
      [](const T* x, T* y, std::int64_t n) { apply<T>(x, y, n, [](V v) { return reciprocal_square_root<T>(v); }); },
      [](const T* x, T* y, std::int64_t n) { apply<T>(x, y, n, [](V v) { return fast_square_root<T>(v); }); },
      [](const T* x, T* y, std::int64_t n) { apply<T>(x, y, n, [](V v) { return softplus<T>(v); }); },
      [](const T* x, T* y, std::int64_t n) { apply<T>(x, y, n, [](V v) { return softplus_derivative<T>(v); }); },
  };
}

}  // namespace

template <typename T>
FusedKernels<T> fused_kernels() {
  return {map_row<T>,          blend_rows<T>,        weigh_residual<T>, weigh_power<T>,        add_panel<T>,
          differences<T>,      image_gradient<T>,    curvatures<T>,     curvature_gradient<T>, channel_gradient<T>,
          spectrum_squares<T>, spectrum_gradient<T>, update<T>,         functions<T>()};
}

template FusedKernels<float> fused_kernels();
template FusedKernels<double> fused_kernels();

}  // namespace mpol::ops::MPOL_ISA
