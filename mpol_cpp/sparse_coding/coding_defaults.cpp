#include <mpol_cpp/sparse_coding/coding_defaults.h>

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

void choose_penalty(AdmmOptions& options, double lambda) {
  if (!(lambda > 0) || !std::isfinite(lambda))
    throw ValueError(fmt::format("lambda is {}; it must be finite and above 0", lambda));
  options.rho = 50 * lambda + 1;
  options.balance.target = 1 + std::pow(18.3, std::log10(lambda) + 1);
}

}  // namespace mpol
