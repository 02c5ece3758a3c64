#pragma once

namespace mpol::ops {

/// A complex number in the kernels of a GPU, whose compiler knows std::complex on the host only; laid out like it.
template <typename T>
struct ComplexValue {
  T real, imag;
};

}  // namespace mpol::ops
