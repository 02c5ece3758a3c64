#include <mpol_cpp/gridding/cell_table.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace mpol::gridding {
namespace {

constexpr std::uint32_t charged_doubles = 2048;  // the budget, which all workers share, is charged in steps
constexpr int largest_directory_shift = 22;      // at most 4 Mi elements, 16 MiB

int shift_for(std::int64_t npix) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(npix) - 1)); }

/// A float near the value, whatever the value.
float rounded(double value) {
  return std::abs(value) < static_cast<double>(std::numeric_limits<float>::max()) ? static_cast<float>(value) : 0.0F;
}

/// Lines that one worker's pages must have room for: all cells of the strip, or the first beyond the budget.
std::size_t room_for(const CellKeys& keys, std::int64_t cells, std::int64_t most_cells, const MemoryBudget& budget) {
  constexpr auto line = static_cast<std::int64_t>(sizeof(CellTotals)), entry = static_cast<std::int64_t>(sizeof(CellEntry));
  const auto leaf = (entry << keys.leaf_shift) / line;
  const auto all = most_cells + std::min(most_cells, cells >> keys.leaf_shift) * leaf;
  return static_cast<std::size_t>(std::min(all, budget.bytes() / line) + 3 * leaf + 2);
}

}  // namespace

CellKeys::CellKeys(std::int64_t npix_, std::int64_t rows_in_strip)
    : npix(npix_),
      row_shift(std::max(shift_for(npix_), shortest_leaf_shift)),
      leaf_shift(std::max(row_shift + shift_for(rows_in_strip) - largest_directory_shift, shortest_leaf_shift)) {}

CellTable::CellTable(const CellKeys& keys, std::uint32_t* directory_, std::int32_t* row_counts, std::int64_t cells,
                     std::int64_t most_cells, MemoryBudget& budget, Pages pages)
    : directory(directory_),
      leaf_shift(keys.leaf_shift),
      row_shift_(keys.row_shift),
      row_counts_(row_counts),
      budget_(budget),
      used_(entry_doubles << leaf_shift),
      charged_(0),
      pages_(room_for(keys, cells, most_cells, budget), pages) {
  memory = reinterpret_cast<double*>(pages_.data());
}

std::uint32_t CellTable::insert(std::uint32_t key, double real, double imag) {
  auto& leaf = directory[key >> leaf_shift];
  if (leaf == none) leaf = take(entry_doubles << leaf_shift);
  const auto place = leaf + entry_doubles * (key & ((1U << leaf_shift) - 1));
  auto& entry = *reinterpret_cast<CellEntry*>(memory + place);
  if (entry.totals != none) return place;
  entry = {{rounded(real), rounded(imag)}, take(totals_doubles), 0};
  ++row_counts_[key >> row_shift_];
  full = budget_.exceeded();
  return full ? 0 : place;
}

std::uint32_t CellTable::take(std::uint32_t doubles) {
  for (; used_ + doubles > charged_; charged_ += charged_doubles) budget_.charge(charged_doubles * sizeof(double));
  return std::exchange(used_, used_ + doubles);
}

}  // namespace mpol::gridding
