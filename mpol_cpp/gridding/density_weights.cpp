#include <mpol_cpp/gridding/density_weights.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::gridding {
namespace {

constexpr std::int64_t cells_per_task = 4096;
constexpr std::size_t absent = -1;

/// Place in `cells` of the Hermitian partner of cell k, or `absent`.
std::size_t partner_of(std::int64_t npix, std::span<const std::int64_t> cells, std::size_t k) {
  const auto plane = cells[k] / (npix * npix) * (npix * npix), row = (cells[k] - plane) / npix, column = cells[k] % npix;
  const auto partner = plane + (npix - row) % npix * npix + (npix - column) % npix;
  const auto found = std::lower_bound(cells.begin(), cells.end(), partner);
  return found != cells.end() && *found == partner ? static_cast<std::size_t>(found - cells.begin()) : absent;
}

/// f^2 of Briggs' robust weighting from the summed weights of cells with their partners. A cell whose partner is not
/// occupied itself stands for both.
double briggs_f_squared(std::int64_t npix, std::span<const std::int64_t> cells, std::span<const double> sums, double robust) {
  double squares = 0, total = 0;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    const double copies = partner_of(npix, cells, k) == absent ? 2 : 1;
    squares += copies * sums[k] * sums[k];
    total += copies * sums[k];
  }
  return std::pow(5 * std::pow(10, -robust), 2) / (squares / total);
}

}  // namespace

void density_weights(std::int64_t npix, std::span<const std::int64_t> cells, std::span<const double> weights, Weighting weighting,
                     double robust, std::span<double> density) {
  if (weighting == Weighting::natural) {
    std::fill(density.begin(), density.end(), 1.0);
    return;
  }
  ops::share_ranges(static_cast<std::int64_t>(cells.size()), cells_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
      const auto partner = partner_of(npix, cells, k);
      density[k] = weights[k] + (partner == absent ? 0.0 : weights[partner]);
    }
  });
  const bool uniform = weighting == Weighting::uniform;
  const double f_squared = uniform ? 1 : briggs_f_squared(npix, cells, density, robust), constant = uniform ? 0 : 1;
  for (auto& value : density) value = 1 / (constant + value * f_squared);
}

}  // namespace mpol::gridding
