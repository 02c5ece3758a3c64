#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Intensities below this have the entropy's gradient at this value, where the formula's own would be -infinity.
inline constexpr double entropy_gradient_floor = 1e-30;  // Jy/arcsec^2

/// Entropy (1/zeta) sum I ln(I/p), with 0 ln 0 = 0. Cube and result as in regularizers.h.
/// @param prior_intensity  p, Jy/arcsec^2, > 0, broadcastable to the cube
/// @param total_flux       zeta, > 0
/// @throws DataError for a negative pixel; ValueError for p <= 0 or zeta <= 0
/// Source: EHT Collaboration IV 2019, eq. 6, as in MPoL.
at::Tensor entropy(const at::Tensor& sky_cube, const at::Tensor& prior_intensity, double total_flux = 10.0);
/// The same with one p for all pixels.
at::Tensor entropy(const at::Tensor& sky_cube, double prior_intensity, double total_flux = 10.0);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct Entropy : RegularizerDefaults {
  static constexpr Driver driver = Driver::pixels;
  static constexpr Cost cost = Cost::large;
  static constexpr double settings[most_settings] = {1e-4, 10.0};  // p, zeta
  static const Regularizer& descriptor();
  static void prepare(double (&own)[most_settings]) { own[0] = 1 / own[0]; }

  template <typename T>
  struct Formula {
    T weight, inverse_prior, floor;
    MPOL_FORMULA Formula(double lambda, const double* own)
        : weight(static_cast<T>(lambda / own[1])),
          inverse_prior(static_cast<T>(own[0])),
          floor(static_cast<T>(losses::entropy_gradient_floor)) {}

    template <typename Math>
    MPOL_FORMULA Slope<typename Math::Value> at(typename Math::Value x) const {
      const auto floored = x < floor ? Math::constant(floor) : x;
      const auto information = Math::logarithm(floored * inverse_prior);
      return {x * information, weight * (information + T(1))};
    }
  };
};

}  // namespace mpol::regularizers
