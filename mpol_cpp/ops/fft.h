#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string_view>

/// One-dimensional transforms of the lines of an image, planned once and then called from any number of threads, each
/// call on the calling thread alone. Unnormalised: inverse(forward(x)) = length x.
namespace mpol::ops {

/// Who computes the transforms.
enum class FftBackend {
  mkl,   ///< Intel MKL, where libtorch_cpu exports it; no allocation in a call
  aten,  ///< whatever LibTorch was built with
};

std::string_view to_string(FftBackend backend);
bool fft_backend_available(FftBackend backend);
/// mkl where it is available, else aten.
FftBackend best_fft_backend();

/// Where the lines lie. Distances are in elements; multiples of 64 bytes let results be bitwise the same everywhere.
struct FftLayout {
  std::int64_t length;         ///< of a line, even
  std::int64_t real_distance;  ///< between real lines, >= length
  std::int64_t half_distance;  ///< between their half spectra, >= length/2 + 1
};

template <typename T>
class LineTransforms {
 public:
  /// Lines that are transformed together where there are so many.
  static constexpr std::int64_t batch = 8;

  virtual ~LineTransforms() = default;

  /// `count` real lines to half spectra of length/2 + 1.
  virtual void forward_rows(const T* lines, std::complex<T>* halves, std::int64_t count) const = 0;
  /// Back; the imaginary parts of elements 0 and length/2 must be 0. The half spectra may be overwritten.
  virtual void inverse_rows(std::complex<T>* halves, T* lines, std::int64_t count) const = 0;
  /// One complex line, in place.
  virtual void forward_column(std::complex<T>* column) const = 0;
  virtual void inverse_column(std::complex<T>* column) const = 0;
};

/// @throws ValueError for an odd length or a backend that is not available; Error when the backend refuses the length
template <typename T>
std::unique_ptr<LineTransforms<T>> plan_line_transforms(const FftLayout& layout, FftBackend backend = best_fft_backend());

}  // namespace mpol::ops
