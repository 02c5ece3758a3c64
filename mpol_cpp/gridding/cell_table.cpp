#include <mpol_cpp/gridding/cell_table.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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

template <typename T>
void add_slab(std::vector<std::unique_ptr<T[]>>& slabs, std::vector<T*>& pointers, int shift) {
  slabs.push_back(std::make_unique_for_overwrite<T[]>(std::size_t{1} << shift));
  pointers.push_back(slabs.back().get());
}

}  // namespace

CellKeys::CellKeys(std::int64_t npix_, std::int64_t rows_in_strip)
    : npix(npix_),
      row_shift(std::max(shift_for(npix_), shortest_leaf_shift)),
      leaf_shift(std::max(row_shift + shift_for(rows_in_strip) - largest_directory_shift, shortest_leaf_shift)) {}

CellTable::CellTable(const CellKeys& keys, std::int32_t* directory_, std::uint32_t first_key_, std::int32_t* row_counts,
                     MemoryBudget& budget)
    : directory(directory_),
      first_key(first_key_),
      leaf_shift(keys.leaf_shift),
      row_shift_(keys.row_shift),
      row_counts_(row_counts),
      budget_(budget) {}

CellEntry* CellTable::insert(std::uint32_t key, double real, double imag) {
  auto& base = directory[(key - first_key) >> leaf_shift];
  if (base == none) base = add_leaf();
  auto* entry = const_cast<CellEntry*>(leaf(base)) + (key & ((1U << leaf_shift) - 1));
  *entry = {add_totals(), 0, {rounded(real), rounded(imag)}};
  ++row_counts_[key >> row_shift_];
  full = budget_.exceeded();
  return full ? nullptr : entry;
}

std::int32_t CellTable::add_leaf() {
  if ((entries_ & ((1 << leaf_slab_shift) - 1)) == 0) {
    add_slab(leaf_slabs_, leaf_pointers_, leaf_slab_shift);
    leaves = leaf_pointers_.data();
  }
  const auto base = entries_;
  entries_ += std::int32_t{1} << leaf_shift;
  auto* begin = leaf_pointers_.back() + (base & ((1 << leaf_slab_shift) - 1));
  std::fill_n(begin, std::int32_t{1} << leaf_shift, CellEntry{none, 0, {0, 0}});
  budget_.charge((std::int64_t{1} << leaf_shift) * static_cast<std::int64_t>(sizeof(CellEntry)));
  return base;
}

std::int32_t CellTable::add_totals() {
  if ((records_ & ((1 << total_slab_shift) - 1)) == 0) {
    add_slab(total_slabs_, total_pointers_, total_slab_shift);
    totals = total_pointers_.data();
  }
  if (records_ % charged_records == 0) budget_.charge(charged_records * static_cast<std::int64_t>(sizeof(CellTotals)));
  total_pointers_.back()[records_ & ((1 << total_slab_shift) - 1)] = CellTotals{};
  return records_++;
}

}  // namespace mpol::gridding
