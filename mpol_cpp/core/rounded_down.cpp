#include <mpol_cpp/core/rounded_down.h>

#include <cmath>

#include <mpol_cpp/core/format.h>

namespace mpol {

std::string rounded_down(double limit) {
  const double unit = std::pow(10.0, std::floor(std::log10(limit)) - 3);  // of the fourth digit
  return fmt::format("{:.4g}", std::floor(limit / unit) * unit);
}

}  // namespace mpol
