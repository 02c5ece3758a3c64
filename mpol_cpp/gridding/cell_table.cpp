#include <mpol_cpp/gridding/cell_table.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace mpol::gridding {
namespace {

constexpr int charged_records = 256;  // the budget, which all workers share, is charged in steps
constexpr int shortest_leaf_shift = 4;
constexpr int largest_directory_shift = 22;  // at most 4 Mi elements, 16 MiB

int shift_for(std::int64_t npix) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(npix) - 1)); }

/// A float near the value, whatever the value.
float rounded(double value) {
  return std::abs(value) < static_cast<double>(std::numeric_limits<float>::max()) ? static_cast<float>(value) : 0.0F;
}

/// What the pages of one worker must have room for: all cells of the strip, or the first beyond the budget.
std::size_t room_for(std::int64_t all, std::int64_t step, std::size_t size, const MemoryBudget& budget) {
  const auto within_budget = budget.bytes() / static_cast<std::int64_t>(size);
  return static_cast<std::size_t>(std::min(all, within_budget) + 2 * step);
}

}  // namespace

CellKeys::CellKeys(std::int64_t npix_, std::int64_t rows_in_strip)
    : npix(npix_),
      row_shift(std::max(shift_for(npix_), shortest_leaf_shift)),
      leaf_shift(std::max(row_shift + shift_for(rows_in_strip) - largest_directory_shift, shortest_leaf_shift)) {}

CellTable::CellTable(const CellKeys& keys, std::uint32_t* directory_, std::int32_t* row_counts, std::int64_t most_cells,
                     MemoryBudget& budget, Pages pages)
    : directory(directory_),
      leaf_shift(keys.leaf_shift),
      row_shift_(keys.row_shift),
      row_counts_(row_counts),
      budget_(budget),
      entries_(1U << leaf_shift),
      records_(1),
      leaf_pages_(room_for(most_cells << leaf_shift, 1 << leaf_shift, sizeof(CellEntry), budget), pages),
      total_pages_(room_for(most_cells, charged_records, sizeof(CellTotals), budget), pages) {
  leaves = reinterpret_cast<double*>(leaf_pages_.data());
  totals = reinterpret_cast<double*>(total_pages_.data());
}

std::uint32_t CellTable::insert(std::uint32_t key, double real, double imag) {
  auto& base = directory[key >> leaf_shift];
  if (base == none) base = add_leaf();
  const auto place = base + entry_doubles * (key & ((1U << leaf_shift) - 1));
  auto& entry = *entries_at(place);
  if (entry.record != none) return place;
  entry = {{rounded(real), rounded(imag)}, add_totals(), 0};
  ++row_counts_[key >> row_shift_];
  full = budget_.exceeded();
  return full ? 0 : place;
}

void CellTable::clear() {
  leaf_pages_.clear();
  total_pages_.clear();
}

std::uint32_t CellTable::add_leaf() {
  budget_.charge((std::int64_t{1} << leaf_shift) * static_cast<std::int64_t>(sizeof(CellEntry)));
  return entry_doubles * std::exchange(entries_, entries_ + (1U << leaf_shift));
}

std::uint32_t CellTable::add_totals() {
  if (records_ % charged_records == 1) budget_.charge(charged_records * static_cast<std::int64_t>(sizeof(CellTotals)));
  return totals_doubles * records_++;
}

}  // namespace mpol::gridding
