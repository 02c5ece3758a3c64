#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// The image grid and the uv grid that is its Fourier dual (conventions: docs/conventions.md).
///
/// Image pixels are `cell_size` arcsec wide with centres l, m = dl (n - npix/2); uv cells are du = 1/(npix dl) wide
/// with centres du (n - npix/2), in wavelengths. A small value type: copy it freely.
class GridCoords {
 public:
  /// @param cell_size  pixel width in arcsec, finite and > 0
  /// @param npix       pixels along each axis, even and > 0
  /// @throws ValueError otherwise
  GridCoords(double cell_size, std::int64_t npix);

  double cell_size() const { return cell_size_; }               ///< arcsec
  std::int64_t npix() const { return npix_; }                   ///< pixels along each axis
  double cell_area() const { return cell_size_ * cell_size_; }  ///< arcsec^2

  double dl() const;                  ///< pixel width, radian
  double dm() const { return dl(); }  ///< pixel height, radian: dl
  double du() const;                  ///< uv cell width, wavelengths
  double dv() const { return du(); }  ///< uv cell height, wavelengths: du

  Tensor l_centers() const;                         ///< (npix) float64, radian, increasing
  Tensor m_centers() const { return l_centers(); }  ///< (npix) float64, radian: those of l
  Tensor u_centers() const;                         ///< (npix) float64, wavelengths, increasing
  Tensor v_centers() const { return u_centers(); }  ///< (npix) float64, wavelengths: those of u
  Tensor u_edges() const;                           ///< (npix + 1) float64, wavelengths
  Tensor v_edges() const { return u_edges(); }      ///< (npix + 1) float64, wavelengths: those of u

  /// uv coordinates of the cells of a packed visibility cube, each (npix, npix) float64: wavelengths, and radian for
  /// phi = atan2(v, u).
  Tensor packed_u() const;
  Tensor packed_v() const;    ///< v, wavelengths
  Tensor packed_q() const;    ///< sqrt(u^2 + v^2), wavelengths
  Tensor packed_phi() const;  ///< radian, -pi to pi
  /// Position on the sky of the pixels of a sky-oriented image, (npix, npix) float64, arcsec: x = offset to the East
  /// (decreases along a row), y = offset to the North.
  Tensor sky_x() const;
  Tensor sky_y() const;  ///< offset to the North, arcsec
  /// The same in packed order.
  Tensor packed_x() const;
  Tensor packed_y() const;  ///< offset to the North, arcsec

  /// Largest q of any cell plus sqrt(2) du: an upper bound for every distance on the grid, wavelengths.
  double q_max() const;
  /// The largest |u| or |v| that has a cell, (npix/2 - 1/2) du, exclusive, wavelengths.
  double max_uv() const;
  /// Image extent [l_max, l_min, m_min, m_max] in arcsec, for figures in sky orientation.
  std::array<double, 4> img_ext() const;
  /// uv extent [u_min, u_max, v_min, v_max] in wavelengths, for figures in ground orientation.
  std::array<double, 4> vis_ext() const;

  /// Ground index of the uv cell that holds coordinate u (or v), floor(u/du + npix/2 + 1/2). This one rule decides
  /// which cell a baseline belongs to, everywhere. The caller has checked that the data fit.
  std::int64_t uv_cell(double u) const;

  /// @throws DataError when max_abs_u or max_abs_v (wavelengths) does not lie inside the grid; the message names the
  ///         offending maximum, the limit and the cell size that would do.
  void check_data_fit(double max_abs_u, double max_abs_v) const;
  /// Whether the data lie inside the grid: check_data_fit() without the exception.
  bool data_fit(double max_abs_u, double max_abs_v) const;

  bool operator==(const GridCoords&) const = default;  ///< the same cell size, to the last bit, and the same npix

 private:
  double cell_size_;
  std::int64_t npix_;
};

/// The grid as saved states name it: "cell_size" (arcsec, to the last digit) and "npix".
std::map<std::string, std::string> grid_labels(const GridCoords& coords);

/// Cell sizes below this (arcsec) represent baselines up to max_abs_uv (wavelengths): (1 - 1/npix) / (2 max_abs_uv).
double maximum_cell_size(double max_abs_uv, std::int64_t npix);

}  // namespace mpol
