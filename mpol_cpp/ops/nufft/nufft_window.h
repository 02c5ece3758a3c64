#pragma once

#include <vector>

#include <mpol_cpp/ops/nufft/nufft_kernels.h>

namespace mpol::ops {

/// The window of the nonuniform transform: the prolate spheroidal wave function of order 0, the one of its width whose
/// energy is most concentrated in the band that the image occupies on a fine grid of twice its size.
///
/// It is an eigenfunction of the finite Fourier transform, so that its transform is its own shape again.
/// Source: Slepian & Pollak 1961; the Legendre series by the recurrence of Xiao, Rokhlin & Yarvin 2001.
class NufftWindow {
 public:
  /// @param width  cells of its support
  explicit NufftWindow(int width);

  int width() const { return width_; }
  /// At a distance in cells from its centre; 1 at the centre, 0 beyond width/2.
  double operator()(double distance) const { return shape(2 * distance / width_); }
  /// Its Fourier transform, at a frequency in cycles per cell, up to 1/4.
  double transform(double frequency) const;

  /// Piecewise polynomials for the kernels.
  template <typename T>
  NufftTables<T> tables() const;

 private:
  double shape(double x) const;  // on [-1, 1]
  /// Factors of T_k(2x) of window(x, r) for offsets x in [-1/2, 1/2].
  std::vector<double> chebyshev_factors(int cell, int degree) const;

  int width_;
  double bandwidth_;
  std::vector<double> legendre_;  // of even degree
};

/// The narrowest window whose error, relative to the norm of the result, is at most about the tolerance.
/// @throws ValueError unless it is in [1e-6, 0.1] in float32 or [1e-13, 0.1] in float64
template <typename T>
int nufft_width(double tolerance);

}  // namespace mpol::ops
