#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// sum |I|. Cube and result as in regularizers.h.
at::Tensor sparsity(const at::Tensor& sky_cube);
/// The same over the pixels where a mask is true.
/// @param mask  bool, broadcastable to the cube, e.g. (npix, npix)
at::Tensor sparsity(const at::Tensor& sky_cube, const at::Tensor& mask);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct Sparsity : RegularizerDefaults {
  static constexpr Driver driver = Driver::pixels;
  static const Regularizer& descriptor();

  template <typename T>
  struct Formula {
    T weight;
    MPOL_FORMULA Formula(double lambda, const double*) : weight(static_cast<T>(lambda)) {}

    template <typename Math>
    MPOL_FORMULA Slope<typename Math::Value> at(typename Math::Value x) const {
      const auto zero = Math::constant(T(0));
      return {Math::magnitude(x), x > zero ? Math::constant(weight) : (x < zero ? Math::constant(-weight) : zero)};
    }
  };
};

}  // namespace mpol::regularizers
