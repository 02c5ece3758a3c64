#pragma once

#include <cstdint>

#include <mpol_cpp/proximal/linear_map.h>

namespace mpol {

/// A convolutional dictionary with periodic edges: images as sums of filters, each convolved with its own map of coefficients,
///
///   (D x)_c = sum_m d_m * x_c,m                 filters (M, h, w): channels have maps of their own, x (…, C, M, rows, columns)
///   (D x)_c = sum_m d_m,c * x_m                 filters (M, C, h, w): channels share maps, x (…, 1, M, rows, columns)
class FilterBank : public LinearMap {
 public:
  /// @throws ShapeError for other filters, or filters larger than the image
  FilterBank(const Tensor& filters, std::int64_t rows, std::int64_t columns);

  std::int64_t filters_count() const { return spectra_.size(-3); }  ///< M
  /// Channels of the filters; 1 where channels have maps of their own.
  std::int64_t channels() const { return spectra_.size(0); }
  std::int64_t rows() const { return rows_; }        ///< of the image
  std::int64_t columns() const { return columns_; }  ///< of the image

  /// The image (…, C, rows, columns) of coefficients.
  Tensor apply(const Tensor& x) const override;
  Tensor adjoint(const Tensor& image) const override;

  /// The half plane of argmin_x |D x - s|^2 / 2 + sum_k delta_k |x_k - w_k|^2 / 2 over frequencies k, by the matrix inversion
  /// lemma:
  ///   x = w + D* (D D* + delta)^-1 (s - D w)
  /// @param w      half plane of coefficients, contiguous; overwritten with x
  /// @param s      half plane of the image, (…, C, rows, columns/2 + 1), contiguous
  /// @param delta  > 0, real, of w's dtype, broadcastable to s
  void fit(Tensor& w, const Tensor& s, const Tensor& delta) const;

  /// An image as maps beside coefficients: (…, C, 1, …), or (…, 1, C, …) where channels share maps.
  Tensor as_maps(const Tensor& image) const { return image.unsqueeze(channels() > 1 ? -4 : -3); }

 private:
  Tensor images_of(const Tensor& half_planes) const;
  Tensor gathered(const Tensor& half_planes) const;

  Tensor spectra_;  // (channels, M, rows, columns/2 + 1)
  Tensor power_;    // D D*: (rows, columns/2 + 1), or (rows, columns/2 + 1, C, C)
  std::int64_t rows_, columns_;
};

}  // namespace mpol
