// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/hann/hann_rows.h>
#include <mpol_cpp/ops/simd/hann_row.h>

namespace mpol::ops::MPOL_ISA {
namespace {

template <typename T>
void convolve(const T* below, const T* center, const T* above, T* out, std::int64_t n) {
  const auto blended = [=](std::int64_t i) __attribute__((always_inline)) {
    const auto rest = n - i;
    return hann_blend<T>(load_first<T>(below + i, rest), load_first<T>(center + i, rest), load_first<T>(above + i, rest));
  };
  HannRow<T, decltype(blended)> row(blended);
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) { store_first<T>(out + i, row.at(i), count); });
}

}  // namespace

template <typename T>
HannRows<T> hann_rows() {
  return {convolve<T>};
}

template HannRows<float> hann_rows();
template HannRows<double> hann_rows();

}  // namespace mpol::ops::MPOL_ISA
