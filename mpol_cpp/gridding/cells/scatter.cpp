#include <mpol_cpp/gridding/cells/scatter.h>

#include <algorithm>

#include <mpol_cpp/core/format.h>

namespace mpol {

std::string Scatter::description() const {
  const double largest = std::max(real, imag);
  return fmt::format(
      "visibilities scatter inside their uv cells by {:.4g} sigma (real) and {:.4g} sigma (imaginary), medians over {} cells; "
      "the limit is {:.4g}; sigma looks underestimated by a factor {:.4g}: scale the weights by {:.4g}",
      real, imag, cells, limit, largest, 1 / (largest * largest));
}

}  // namespace mpol
