#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Power spectral density prior, sum |V|^2 / P (Source: MPoL's PSD), with P as in base/expected_power.h.
/// @param packed_visibilities  (…, nchan, npix, npix), complex, Jy
/// @param length_scale         l of P, arcsec, > 0
at::Tensor psd(const at::Tensor& packed_visibilities, const GridCoords& coords, double length_scale);
/// The same with 1/P from inverse_expected_power, in the visibilities' real dtype and on their device.
at::Tensor psd(const at::Tensor& packed_visibilities, const at::Tensor& inverse_power);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct Psd : RegularizerDefaults {
  static constexpr Driver driver = Driver::half_plane;
  static const Regularizer& descriptor();
  /// 1/P, (npix, npix) float64, packed. @throws ValueError where it overflows in float32, or in float64 if that is `precise`
  static at::Tensor cell_weights(const GridCoords& coords, const double* own, bool precise);

  template <typename T>
  struct Formula {
    T twice_weight;
    MPOL_FORMULA Formula(double lambda, const double*) : twice_weight(static_cast<T>(2 * lambda)) {}

    template <typename Math>
    MPOL_FORMULA HalfPlaneSlope<typename Math::Value> at(typename Math::Value weight, typename Math::Value real,
                                                         typename Math::Value imag) const {
      const auto factor = twice_weight * weight;
      return {weight * (real * real + imag * imag), factor * real, factor * imag};
    }
  };
};

}  // namespace mpol::regularizers
