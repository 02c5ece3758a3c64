#include <mpol_cpp/coordinates/loglinspace.h>

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

std::vector<double> loglinspace(double start, double end, std::int64_t logarithmic, std::int64_t linear) {
  if (!std::isfinite(start) || !std::isfinite(end) || !(start < end)) {
    throw ValueError(fmt::format("loglinspace runs from {} to {}; both must be finite and the first the smaller", start, end));
  }
  if (logarithmic < 1 || linear < 2) {
    throw ValueError(
        fmt::format("loglinspace has {} logarithmic and {} linear edges; it needs at least 1 and 2", logarithmic, linear));
  }
  const double ratio = static_cast<double>(linear) / static_cast<double>(linear - 1);
  const double length = end - start;
  const double last_linear = length * std::pow(ratio, -static_cast<double>(logarithmic));
  std::vector<double> edges;
  for (std::int64_t i = 0; i < linear; ++i) {
    edges.push_back(start + last_linear * static_cast<double>(i) / static_cast<double>(linear - 1));
  }
  for (std::int64_t j = 1; j < logarithmic; ++j) {
    edges.push_back(start + length * std::pow(ratio, static_cast<double>(j - logarithmic)));
  }
  edges.push_back(end);
  return edges;
}

}  // namespace mpol
