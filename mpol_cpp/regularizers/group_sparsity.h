#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// L2,1 norm over channels: sum over pixels of the norm of their spectra,
///   sum_{i,j} sqrt(sum_c I[c,i,j]^2 + epsilon)
/// Few pixels shine, and those that do may in all channels: where a line or a continuum shines, its other channels cost little
/// more. Of one channel it is the sparsity. Cube and result as in regularizers.h: Jy/arcsec^2.
/// @param epsilon  Jy^2/arcsec^4, > 0, keeps the gradient finite where a spectrum is dark
/// Source: the group lasso of Yuan & Lin 2006, with the spectra as groups.
at::Tensor group_sparsity(const at::Tensor& sky_cube, double epsilon = 1e-10);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct GroupSparsity : RegularizerDefaults {
  static constexpr Driver driver = Driver::spectra;
  static constexpr double settings[most_settings] = {1e-10};
  static const Regularizer& descriptor();

  template <typename T>
  struct Formula {
    T weight, epsilon;
    MPOL_FORMULA Formula(double lambda, const double* own) : weight(static_cast<T>(lambda)), epsilon(static_cast<T>(own[0])) {}

    template <typename Math>
    MPOL_FORMULA Slope<typename Math::Value> at(typename Math::Value x, typename Math::Value squares) const {
      const auto smoothed = squares + epsilon;
      const auto inverse = Math::reciprocal_square_root(smoothed);
      return {smoothed * inverse, weight * x * inverse};
    }
  };
};

}  // namespace mpol::regularizers
