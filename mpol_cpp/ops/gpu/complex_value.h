#pragma once

#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

/// A complex number in the kernels of a GPU, whose compiler knows std::complex on the host only; laid out like it. It is aligned
/// as LibTorch's own, so that both parts are one access to memory.
template <typename T>
struct alignas(2 * sizeof(T)) ComplexValue {
  T real, imag;

  MPOL_DEVICE friend ComplexValue operator+(const ComplexValue& a, const ComplexValue& b) {
    return {a.real + b.real, a.imag + b.imag};
  }
  MPOL_DEVICE friend ComplexValue operator-(const ComplexValue& a, const ComplexValue& b) {
    return {a.real - b.real, a.imag - b.imag};
  }
  MPOL_DEVICE friend ComplexValue operator*(const ComplexValue& a, const ComplexValue& b) {
    return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
  }
  MPOL_DEVICE friend ComplexValue operator*(T a, const ComplexValue& b) { return {a * b.real, a * b.imag}; }
  /// -i times this.
  MPOL_DEVICE ComplexValue turned_back() const { return {imag, -real}; }
  /// i times its conjugate: of a transform's input and output, it makes the inverse transform.
  MPOL_DEVICE ComplexValue swapped() const { return {imag, real}; }
};

}  // namespace mpol::ops
