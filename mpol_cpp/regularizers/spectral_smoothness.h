#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Squared second differences along channels,
///   sum_{c,i,j} (I[c-1,i,j] - 2 I[c,i,j] + I[c+1,i,j])^2
/// over the channels that have two neighbours: spectra that are straight lines cost nothing; 0 for fewer than three channels.
/// Channels are taken as evenly spaced. Cube and result as in regularizers.h: Jy^2/arcsec^4. Source: the smoothing of Whittaker
/// 1923 with differences of order two.
at::Tensor spectral_smoothness(const at::Tensor& sky_cube);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct SpectralSmoothness : RegularizerDefaults {
  static constexpr Driver driver = Driver::channels;
  static const Regularizer& descriptor();

  template <typename T>
  struct Formula {
    T twice_weight;
    MPOL_FORMULA Formula(double lambda, const double*) : twice_weight(static_cast<T>(2 * lambda)) {}

    template <typename Math, typename Spectrum>
    MPOL_FORMULA Slope<typename Math::Value> at(const Spectrum& spectrum) const {
      auto slope = Math::constant(T(0)), value = slope;
      const auto x = spectrum.at(0);
      if (spectrum.has(-2)) slope += (spectrum.at(-2) - spectrum.at(-1)) - (spectrum.at(-1) - x);
      if (spectrum.has(2)) slope += (x - spectrum.at(1)) - (spectrum.at(1) - spectrum.at(2));
      if (spectrum.has(-1) && spectrum.has(1)) {
        const auto bend = (spectrum.at(-1) - x) - (x - spectrum.at(1));
        slope -= T(2) * bend;
        value = bend * bend;
      }
      return {value, twice_weight * slope};
    }
  };
};

}  // namespace mpol::regularizers
