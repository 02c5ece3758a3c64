// Compiled once per instruction set: everything here is in an unnamed namespace but the one function that names it.
#include <cmath>

#include <mpol_cpp/gridding/cell_kernels.h>
#include <mpol_cpp/gridding/cell_table.h>

namespace mpol::gridding {
namespace {

/// Ground cell of a coordinate: truncation is floor here, since everything on the grid has u/du + npix/2 + 1/2 >= 1.
/// A coordinate within rounding of the grid's outer edge belongs to the last cell.
inline std::int32_t ground_cell(double u, double du, double half, std::int32_t last) {
  const auto cell = static_cast<std::int32_t>(u / du + half + 0.5);
  return cell < last ? cell : last;
}

inline std::uint32_t packed_cell(std::int32_t ground, std::int32_t half) {
  return static_cast<std::uint32_t>(ground >= half ? ground - half : ground + half);
}

template <bool partner>
void locate_cells(const double* __restrict u, const double* __restrict v, std::int64_t count, double du, std::int32_t npix,
                  int row_shift, std::uint32_t* __restrict keys) {
  const std::int32_t half = npix / 2, last = npix - 1;
  const double centre = half;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int32_t column = ground_cell(u[i], du, centre, last), row = ground_cell(v[i], du, centre, last);
    if constexpr (partner) {
      column = npix - column;
      row = npix - row;
    }
    keys[i] = packed_cell(row, half) << row_shift | packed_cell(column, half);
  }
}

void locate(const double* u, const double* v, std::int64_t count, const CellRule& rule, std::uint32_t* keys) {
  if (rule.partner) locate_cells<true>(u, v, count, rule.du, rule.npix, rule.row_shift, keys);
  else locate_cells<false>(u, v, count, rule.du, rule.npix, rule.row_shift, keys);
}

std::int64_t select(const std::uint32_t* keys, std::int64_t count, int row_shift, const std::uint8_t* owner_of_row,
                    std::uint8_t owner, std::uint16_t* picks) {
  std::int64_t picked = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    picks[picked] = static_cast<std::uint16_t>(i);
    picked += owner_of_row[keys[i] >> row_shift] == owner;
  }
  return picked;
}

/// Null where the cell has no entry yet.
inline CellEntry* find_entry(const CellTable& table, std::uint32_t key) {
  const auto base = table.directory[(key - table.first_key) >> table.leaf_shift];
  if (base == CellTable::none) return nullptr;
  auto* entry = table.leaves + base + (key & ((1U << table.leaf_shift) - 1));
  return entry->record == CellTable::none ? nullptr : entry;
}

// A complex number in one register: what the compiler makes of pairs of doubles is slower.
using Pair = double __attribute__((vector_size(16)));

inline Pair load_pair(const double* values) { return Pair{values[0], values[1]}; }
inline Pair load_pair(const float* values) { return Pair{static_cast<double>(values[0]), static_cast<double>(values[1])}; }

inline void add_sample(CellTotals& totals, CellEntry& entry, double weight, Pair value) {
  auto* sums = reinterpret_cast<Pair*>(&totals);
  const double root = std::sqrt(weight);
  const Pair d = value - load_pair(entry.origin), weighted = weight * d;
  sums[0] += Pair{weight, root};
  sums[1] += weighted;
  sums[2] += root * d;
  sums[3] += weighted * d;
  ++entry.samples;
}

/// Records lie all over the second and third level caches: they are looked up, and asked for, a group ahead of their use.
constexpr std::int64_t group_samples = 256;
/// Samples come from memory, where the processor sees no further ahead than a page.
constexpr std::int64_t samples_ahead = 256;

template <typename Weight, typename Value>
struct Samples {
  const std::uint32_t* keys;
  const std::uint16_t* picks;  // null: all of them
  const Weight* weights;
  const Value* data;
  Pair sign;  // of real and imaginary parts

  std::int64_t index(std::int64_t k) const { return picks != nullptr ? picks[k] : k; }
  Pair value(std::int64_t i) const { return sign * load_pair(data + 2 * i); }
};

template <typename Weight, typename Value>
bool find_group(CellTable& table, const Samples<Weight, Value>& samples, std::int64_t begin, std::int64_t end,
                CellEntry** entries) {
  for (auto k = begin; k < end; ++k) {
    const auto i = samples.index(k);
    __builtin_prefetch(samples.data + 2 * (i + samples_ahead));
    __builtin_prefetch(samples.weights + i + samples_ahead);
    auto* entry = find_entry(table, samples.keys[i]);
    if (entry == nullptr) [[unlikely]] {
      const auto value = samples.value(i);
      entry = table.insert(samples.keys[i], value[0], value[1]);
      if (entry == nullptr) return false;
    }
    *entries++ = entry;
    __builtin_prefetch(table.totals + entry->record, 0, 2);
  }
  return true;
}

template <typename Weight, typename Value>
void accumulate_samples(CellTable& table, const Samples<Weight, Value>& samples, std::int64_t count) {
  CellEntry* entries[group_samples];
  for (std::int64_t begin = 0; begin < count; begin += group_samples) {
    const auto end = begin + group_samples < count ? begin + group_samples : count;
    if (!find_group(table, samples, begin, end, entries)) return;
    for (auto k = begin; k < end; ++k) {
      const auto i = samples.index(k);
      auto& entry = *entries[k - begin];
      add_sample(table.totals[entry.record], entry, static_cast<double>(samples.weights[i]), samples.value(i));
    }
  }
}

template <typename Weight, typename Value>
void accumulate_block(CellTable& table, const std::uint32_t* keys, const std::uint16_t* picks, std::int64_t count,
                      const Weight* weights, const Value* data, double imag_sign) {
  accumulate_samples(table, Samples<Weight, Value>{keys, picks, weights, data, Pair{1, imag_sign}}, count);
}

template <typename Weight>
void accumulate_weights(CellTable& table, const std::uint32_t* keys, const std::uint16_t* picks, std::int64_t count,
                        const SampleBlock& block) {
  const auto* weights = static_cast<const Weight*>(block.weights);
  if (block.data_are_double) {
    accumulate_block(table, keys, picks, count, weights, static_cast<const double*>(block.data), block.imag_sign);
  } else {
    accumulate_block(table, keys, picks, count, weights, static_cast<const float*>(block.data), block.imag_sign);
  }
}

void accumulate(CellTable& table, const std::uint32_t* keys, const std::uint16_t* picks, std::int64_t count,
                const SampleBlock& block) {
  if (block.weights_are_double) accumulate_weights<double>(table, keys, picks, count, block);
  else accumulate_weights<float>(table, keys, picks, count, block);
}

}  // namespace

namespace MPOL_ISA {
CellKernels cell_kernels() { return {locate, select, accumulate}; }
}  // namespace MPOL_ISA

}  // namespace mpol::gridding
