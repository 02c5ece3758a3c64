// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/simd/vector.h>
#include <mpol_cpp/ops/wavelet/combine_rows.h>

namespace mpol::ops::MPOL_ISA {
namespace {

template <typename T>
void combine(const T* const* rows, const T* of_first, const T* of_second, int count, T* first, T* second, std::int64_t n) {
  static_assert(2 * lanes<T> <= room_behind_rows);
  for (std::int64_t i = 0; i < n; i += 2 * lanes<T>) {  // two vectors: sums that do not wait for each other
    Vector<T> a{}, b{}, c{}, d{};
    for (int k = 0; k < count; ++k) {
      const auto near = load<T>(rows[k] + i), far = load<T>(rows[k] + i + lanes<T>);
      const auto low = broadcast<T>(of_first[k]), high = broadcast<T>(of_second[k]);
      a += low * near;
      b += low * far;
      c += high * near;
      d += high * far;
    }
    store<T>(first + i, a);
    store<T>(first + i + lanes<T>, b);
    store<T>(second + i, c);
    store<T>(second + i + lanes<T>, d);
  }
}

}  // namespace

template <typename T>
WaveletKernels<T> wavelet_kernels() {
  return {combine<T>};
}

template WaveletKernels<float> wavelet_kernels();
template WaveletKernels<double> wavelet_kernels();

}  // namespace mpol::ops::MPOL_ISA
