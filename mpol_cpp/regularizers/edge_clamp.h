#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// sum of squares of the four edge rows and columns (corners count twice): keeps flux off the border. Cube and result as in
/// regularizers.h.
at::Tensor edge_clamp(const at::Tensor& sky_cube);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct EdgeClamp : RegularizerDefaults {
  static constexpr Driver driver = Driver::edges;
  static const Regularizer& descriptor();

  template <typename T>
  struct Formula {
    T twice_weight;
    MPOL_FORMULA Formula(double lambda, const double*) : twice_weight(static_cast<T>(2 * lambda)) {}

    template <typename Math>
    MPOL_FORMULA Slope<typename Math::Value> at(typename Math::Value x) const {
      return {x * x, twice_weight * x};
    }
  };
};

}  // namespace mpol::regularizers
