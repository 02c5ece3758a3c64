#pragma once

#include <cstdint>

#include <mpol_cpp/regularizers/base/formula.h>

namespace mpol::losses {

/// Sparsity in the bases of Dirac and Daubechies 1 to 8 together, those of SARA:
///   sum |Psi* I|,   Psi* I = (I, W_1 I, ..., W_8 I) / 3
/// Psi is a tight frame, Psi Psi* I = I, and W_n the orthogonal transform of each channel image with periodic edges, by four
/// levels or as many as its pixels can be split in halves. No edge pays for lying where it lies in one basis alone: blobs, rings
/// and points are all sparse in one of them. Cube and result as in regularizers.h: Jy/arcsec^2. Where a coefficient is 0 the
/// gradient takes its slope as 0.
/// @throws ShapeError unless rows and columns are even
/// Source: Carrillo, McEwen & Wiaux 2012.
at::Tensor wavelets(const at::Tensor& sky_cube);

}  // namespace mpol::losses

namespace mpol::regularizers {

struct Wavelets : RegularizerDefaults {
  static const Regularizer& descriptor();
};

}  // namespace mpol::regularizers
