#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/ops/wavelet/wavelet_transform.h>

namespace mpol::ops {

/// The bases of SARA beside that of Dirac, for square images of any even size.
class SaraBases {
 public:
  static constexpr std::int64_t count = 8;  ///< Daubechies 1 to 8
  static constexpr double share = 1.0 / 3;  ///< 1/sqrt(9): what each of them and Dirac have of the tight frame
  static constexpr std::int64_t most_levels = 4;

  explicit SaraBases(std::int64_t npix) : levels_(wavelet_levels(npix, most_levels)) {}

  /// (W_1 x, ..., W_8 x), (8, …, npix, npix). @throws ShapeError unless npix is even
  Tensor analyze(const Tensor& images) const { return wavelet_analysis(images, moments(), at_least_one()); }
  /// The adjoint: its square has the norm 8.
  Tensor synthesize(const Tensor& coefficients) const { return wavelet_synthesis(coefficients, moments(), at_least_one()); }

 private:
  static std::vector<std::int64_t> moments() { return {1, 2, 3, 4, 5, 6, 7, 8}; }
  std::int64_t at_least_one() const { return levels_ > 0 ? levels_ : 1; }  // which an odd size refuses
  std::int64_t levels_;
};

}  // namespace mpol::ops
