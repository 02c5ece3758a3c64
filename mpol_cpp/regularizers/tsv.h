#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Total squared variation, sum (I[c,i+1,j] - I[c,i,j])^2 + (I[c,i,j+1] - I[c,i,j])^2 over the block of tv_image. Cube and result
/// as in regularizers.h.
at::Tensor tsv(const at::Tensor& sky_cube);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct Tsv : RegularizerDefaults {
  static constexpr Driver driver = Driver::differences;
  static const Regularizer& descriptor();

  template <typename T>
  struct Formula {
    T twice_weight;
    MPOL_FORMULA Formula(double lambda, const double*) : twice_weight(static_cast<T>(2 * lambda)) {}

    template <typename Math>
    MPOL_FORMULA Slope<typename Math::Value> at(typename Math::Value squares) const {
      return {squares, Math::constant(twice_weight)};
    }
  };
};

}  // namespace mpol::regularizers
