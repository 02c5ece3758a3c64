#pragma once

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Sparsity of the cells beyond q_max, sum (|Re V| + |Im V|) over q > q_max.
/// @param packed_visibilities  (…, nchan, npix, npix), complex, Jy
/// @param q_max                wavelengths, >= 0
at::Tensor uv_sparsity(const at::Tensor& packed_visibilities, const GridCoords& coords, double q_max);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct UvSparsity : RegularizerDefaults {
  static const Regularizer& descriptor();
};

}  // namespace mpol::regularizers
