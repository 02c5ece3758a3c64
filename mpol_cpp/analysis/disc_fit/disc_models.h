#pragma once

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_geometry.h>

namespace mpol {

using torch::Tensor;

/// Simple sources whose Fourier transforms are known, axisymmetric in their own plane. With z = 2 pi q size, q the length of
/// the deprojected baseline, their visibilities per unit of flux are:
enum class DiscShape {
  point,       ///< 1
  gaussian,    ///< exp(-2 pi^2 sigma^2 q^2); size is the full width at half maximum
  ring,        ///< J0(z), infinitely thin; size is the radius
  broad_ring,  ///< J0(z) times the transform of a Gaussian whose full width at half maximum is `width`
  disc,        ///< 2 J1(z)/z, of constant brightness; size is the radius
};

/// The transform of a shape of unit flux at a deprojected baseline, and its derivatives.
struct ShapeValue {
  /// The visibility at unit flux, and its derivatives by q (1/wavelength), size and width (1/arcsec).
  double value = 1, by_q = 0, by_size = 0, by_width = 0;
};

/// @param q  wavelengths  @param size, width  arcsec; only their magnitude matters to the value
ShapeValue shape_value(DiscShape shape, double q, double size, double width);

/// One such source as it lies on the sky.
struct DiscModel {
  DiscShape shape = DiscShape::gaussian;  ///< what the disc is like in its own plane
  double flux = 1;                        ///< Jy
  double size = 0;                        ///< in the plane of the disc, arcsec
  double width = 0;                       ///< of a broad ring, arcsec
  DiscGeometry geometry;                  ///< inclination, position angle and centre on the sky
};

/// Visibilities of the model: flux times the transform at q = hypot((u cos PA - v sin PA) cos i, u sin PA + v cos PA), times
/// exp(-2 pi i (u East + v North)).
/// @param u, v  of one shape, float64, wavelengths, any device; Bessel functions are computed on the host
/// @return      complex128, in their shape and on their device, Jy
/// @throws ShapeError when u and v differ in shape or are not float64; ValueError for a size, width or flux that is not finite,
///         or a negative size or width
Tensor disc_visibilities(const DiscModel& model, const Tensor& u, const Tensor& v);

/// Derivatives of these, analytic, in this order along the first dimension: flux (Jy), size, width (arcsec), inclination,
/// position angle (radian), offset East, offset North (arcsec).
/// @return  (7, …) complex128
Tensor disc_visibility_slopes(const DiscModel& model, const Tensor& u, const Tensor& v);

}  // namespace mpol
