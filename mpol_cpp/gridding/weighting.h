#pragma once

namespace mpol {

/// Density weight D of a uv cell with summed weight W, in which the Hermitian partners of the samples count too.
enum class Weighting {
  natural,  ///< D = 1
  uniform,  ///< D = 1/W
  briggs,   ///< D = 1/(1 + W f^2), f^2 = (5 10^-R)^2 / (sum W^2 / sum w)
};

}  // namespace mpol
