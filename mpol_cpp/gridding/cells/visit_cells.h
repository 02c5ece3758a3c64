#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/gridding/cells/cell_kernels.h>
#include <mpol_cpp/ops/simd/isa.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::gridding {

/// Keys of cells and coordinates in cells are numbers of 32 bits.
inline constexpr std::int64_t largest_npix = 65536;

/// @throws ValueError beyond largest_npix
inline void check_npix(const GridCoords& coords) {
  if (coords.npix() <= largest_npix) return;
  throw ValueError(fmt::format("npix is {}; gridding goes up to {}: use a larger cell size", coords.npix(), largest_npix));
}

/// Which cell has the index 0 of a row or column.
enum class CellOrder { ground, packed };

/// Calls visit(k, i) on several threads with each sample k and the index i = row * npix + column of its cell.
/// @param u, v  (n) wavelengths that fit the grid, float64, contiguous
/// @throws ValueError for grids of more than largest_npix
template <typename Visit>
void visit_samples(const GridCoords& coords, const Tensor& u, const Tensor& v, CellOrder order, const Visit& visit) {
  check_npix(coords);
  constexpr std::int64_t chunk = 8192;  // samples that one thread takes at a time
  const auto* columns = u.const_data_ptr<double>();
  const auto* rows = v.const_data_ptr<double>();
  const auto npix = static_cast<std::int32_t>(coords.npix());
  const auto locate = cell_kernels(selected_isa()).locate;
  const CellRule rule{1, coords.du(), npix, order == CellOrder::ground ? 0 : npix / 2, npix, false};
  ops::share_ranges(u.size(0), chunk, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::uint32_t, 1024> keys;
    constexpr auto most = static_cast<std::int64_t>(keys.size());
    for (auto first = begin; first < end; first += most) {
      const auto count = std::min(most, end - first);
      locate({columns + first, rows + first, true}, count, rule, keys.data());
      for (std::int64_t i = 0; i < count; ++i) visit(first + i, std::size_t{keys[static_cast<std::size_t>(i)]});
    }
  });
}

/// The same with visit(i) for the cells alone, in ground order.
template <typename Visit>
void visit_cells(const GridCoords& coords, const Tensor& u, const Tensor& v, const Visit& visit) {
  visit_samples(coords, u, v, CellOrder::ground, [&](std::int64_t, std::size_t cell) { visit(cell); });
}

}  // namespace mpol::gridding
