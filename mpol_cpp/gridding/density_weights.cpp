#include <mpol_cpp/gridding/density_weights.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

namespace mpol::gridding {
namespace {

constexpr std::int64_t cells_per_task = 4096;

/// Summed weight of each cell and its partner; `copies` is 2 where the partner is not occupied and so has the same sum
/// without being listed, else 1.
struct HermitianWeights {
  Tensor sums;
  Tensor copies;
};

HermitianWeights hermitian_weights(std::int64_t npix, std::span<const std::int64_t> cells, std::span<const double> weights) {
  const auto count = static_cast<std::int64_t>(cells.size()), per_plane = npix * npix;
  HermitianWeights result{at::empty({count}, torch::kFloat64), at::empty({count}, torch::kFloat64)};
  auto* sums = result.sums.mutable_data_ptr<double>();
  auto* copies = result.copies.mutable_data_ptr<double>();
  const auto plane = count == 0 ? 0 : cells.front() / per_plane * per_plane;
  at::parallel_for(0, count, cells_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) {
      const auto cell = cells[static_cast<std::size_t>(k)] - plane;
      const auto partner = plane + (npix - cell / npix) % npix * npix + (npix - cell % npix) % npix;
      const auto found = std::lower_bound(cells.begin(), cells.end(), partner);
      const bool occupied = found != cells.end() && *found == partner;
      sums[k] = weights[static_cast<std::size_t>(k)] + (occupied ? weights[static_cast<std::size_t>(found - cells.begin())] : 0.0);
      copies[k] = occupied ? 1 : 2;
    }
  });
  return result;
}

}  // namespace

Tensor density_weights(std::int64_t npix, std::span<const std::int64_t> cells, std::span<const double> weights,
                       Weighting weighting, double robust) {
  if (weighting == Weighting::natural) return at::ones({static_cast<std::int64_t>(cells.size())}, torch::kFloat64);
  const auto [sums, copies] = hermitian_weights(npix, cells, weights);
  if (weighting == Weighting::uniform) return sums.reciprocal();
  const double mean = ((sums.square() * copies).sum() / (sums * copies).sum()).item<double>();
  const double f_squared = std::pow(5 * std::pow(10, -robust), 2) / mean;
  return (1 + sums * f_squared).reciprocal();
}

}  // namespace mpol::gridding
