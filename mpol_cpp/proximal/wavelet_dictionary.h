#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/proximal/linear_map.h>

namespace mpol {

/// The 2 n coefficients of the Daubechies low-pass filter with n vanishing moments and extremal phase; they sum to sqrt(2).
/// By spectral factorization: with P(y) = sum_{k<n} C(n-1+k, k) y^k and y = (2 - z - 1/z)/4, the filter is (1 + z)^n times the
/// factors of those roots z of P that lie within the unit circle.
/// @throws ValueError unless 1 <= n <= 8
/// Source: Daubechies 1992, chapter 6.
std::vector<double> daubechies_filter(std::int64_t vanishing_moments);

/// The orthogonal wavelet transform of each channel with periodic edges: rows and columns are each split in halves, and the
/// quarter of low frequencies again, `levels` times. Its adjoint is its inverse.
class WaveletTransform : public LinearMap {
 public:
  /// @throws ValueError for vanishing moments that daubechies_filter refuses, or levels below 1
  WaveletTransform(std::int64_t vanishing_moments, std::int64_t levels);
  /// @throws ShapeError unless 2^levels divides rows and columns
  Tensor apply(const Tensor& x) const override;
  Tensor adjoint(const Tensor& y) const override;

 private:
  std::vector<std::int64_t> moments_;  // one
  std::int64_t levels_;
};

/// Options of a SaraDictionary.
struct SaraOptions {
  std::int64_t most_moments = 8;  ///< the dictionary is made of Dirac and Daubechies 1 to this, 1 to 8
  std::int64_t levels = 4;        ///< of each wavelet transform, >= 1
};

/// The dictionary of SARA, sparsity averaging: an image in the bases of Dirac and Daubechies 1 to 8 together,
///
///   Psi* x = (x, W_1 x, ..., W_8 x) / 3:   (…, C, rows, columns) to (…, 9 C, rows, columns)
///
/// a tight frame: Psi Psi* x = x. apply() is Psi* (analysis), adjoint() is Psi (synthesis).
/// Source: Carrillo, McEwen & Wiaux 2012.
class SaraDictionary : public LinearMap {
 public:
  /// @throws ValueError for options out of range
  explicit SaraDictionary(const SaraOptions& options = {});
  /// @throws ShapeError unless 2^levels divides rows and columns
  Tensor apply(const Tensor& x) const override;
  Tensor adjoint(const Tensor& y) const override;
  /// Dirac and the wavelets.
  std::int64_t bases() const { return static_cast<std::int64_t>(moments_.size()) + 1; }

 private:
  std::vector<std::int64_t> moments_;  // of the wavelets
  std::int64_t levels_;
};

}  // namespace mpol
