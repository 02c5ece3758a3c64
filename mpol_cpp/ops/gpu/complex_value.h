#pragma once

namespace mpol::ops {

/// A complex number in the kernels of a GPU, whose compiler knows std::complex on the host only; laid out like it. It is aligned
/// as LibTorch's own, so that both parts are one access to memory.
template <typename T>
struct alignas(2 * sizeof(T)) ComplexValue {
  T real, imag;
};

}  // namespace mpol::ops
