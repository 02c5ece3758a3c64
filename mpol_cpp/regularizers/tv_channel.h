#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Total variation between neighbouring channels, sum sqrt((I[c+1] - I[c])^2 + epsilon); 0 for one channel. Cube and result as in
/// regularizers.h.
/// @param epsilon  Jy^2/arcsec^4, > 0
at::Tensor tv_channel(const at::Tensor& sky_cube, double epsilon = 1e-10);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct TvChannel : RegularizerDefaults {
  static constexpr Driver driver = Driver::channels;
  static constexpr double settings[most_settings] = {1e-10};
  static const Regularizer& descriptor();

  template <typename T>
  struct Formula {
    T weight, epsilon;
    MPOL_FORMULA Formula(double lambda, const double* own) : weight(static_cast<T>(lambda)), epsilon(static_cast<T>(own[0])) {}

    template <typename Math, typename Spectrum>
    MPOL_FORMULA Slope<typename Math::Value> at(const Spectrum& spectrum) const {
      auto slope = Math::constant(T(0)), value = slope;
      const auto x = spectrum.at(0);
      if (spectrum.has(-1)) {
        const auto step = x - spectrum.at(-1);
        slope += step * Math::reciprocal_square_root(step * step + epsilon);
      }
      if (spectrum.has(1)) {
        const auto step = spectrum.at(1) - x, smoothed = step * step + epsilon;
        const auto inverse = Math::reciprocal_square_root(smoothed);
        slope -= step * inverse;
        value = smoothed * inverse;
      }
      return {value, weight * slope};
    }
  };
};

}  // namespace mpol::regularizers
