#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <ATen/Parallel.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/gridding/cell_kernels.h>
#include <mpol_cpp/ops/isa.h>

namespace mpol::gridding {

/// Calls visit(i) on several threads with the index i = row * npix + column, ground order, of the cell of each sample.
/// @param u, v  (n) wavelengths that fit the grid, float64, contiguous
template <typename Visit>
void visit_cells(const GridCoords& coords, const Tensor& u, const Tensor& v, const Visit& visit) {
  constexpr std::int64_t chunk = 8192;  // samples that one thread takes at a time
  const auto* columns = u.const_data_ptr<double>();
  const auto* rows = v.const_data_ptr<double>();
  const auto npix = static_cast<std::int32_t>(coords.npix());
  const auto locate = cell_kernels(selected_isa()).locate;
  const CellRule rule{1, coords.du(), npix, 0, npix, false};
  at::parallel_for(0, u.size(0), chunk, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::uint32_t, 1024> keys;
    constexpr auto most = static_cast<std::int64_t>(keys.size());
    for (auto first = begin; first < end; first += most) {
      const auto count = std::min(most, end - first);
      locate({columns + first, rows + first, true}, count, rule, keys.data());
      for (std::int64_t i = 0; i < count; ++i) visit(std::size_t{keys[static_cast<std::size_t>(i)]});
    }
  });
}

}  // namespace mpol::gridding
