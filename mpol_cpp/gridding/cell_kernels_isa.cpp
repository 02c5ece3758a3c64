// Compiled once per instruction set: everything here is in an unnamed namespace but the one function that names it.
#include <cmath>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <mpol_cpp/gridding/cell_kernels.h>
#include <mpol_cpp/gridding/cell_table.h>

namespace mpol::gridding {
namespace {

constexpr std::int64_t located_samples = 64;  // samples whose cells are computed together

inline std::uint32_t packed_cell(std::int32_t ground, std::int32_t half) {
  return static_cast<std::uint32_t>(ground >= half ? ground - half : ground + half);
}

/// The packed cell of a coordinate by the division that decides (GridCoords::uv_cell). Truncation is floor here, since
/// everything on the grid has u/du + npix/2 + 1/2 >= 1. A coordinate within rounding of the grid's outer edge belongs to the
/// last cell.
inline std::uint32_t cell_by_division(double u, const CellRule& rule) {
  const double position = u * rule.scale / rule.du + 0.5 * rule.npix + 0.5;
  const auto cell = static_cast<std::int32_t>(position);
  const auto ground = cell < rule.npix ? cell : rule.npix - 1;
  return packed_cell(rule.partner ? rule.npix - ground : ground, rule.npix / 2);
}

/// Keys by multiplication, which is several times as fast as the division. The two differ by rounding only: false when a
/// coordinate is so near the edge of a cell that the difference could matter.
template <bool partner, typename Real>
inline bool locate_by_product(const Real* __restrict u, const Real* __restrict v, std::int64_t count, const CellRule& rule,
                              std::uint32_t* __restrict keys) {
  constexpr double rounding = 1e-9;  // npix <= 65536: an error of 4e-11 at most
  const double inverse = rule.scale / rule.du, origin = 0.5 * rule.npix + 0.5;
  const std::int32_t npix = rule.npix, half = rule.npix / 2, row_shift = rule.row_shift;
  std::int64_t unsure = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double u_cells = static_cast<double>(u[i]) * inverse + origin, v_cells = static_cast<double>(v[i]) * inverse + origin;
    const auto column = static_cast<std::int32_t>(u_cells), row = static_cast<std::int32_t>(v_cells);
    const double u_off = std::abs(u_cells - static_cast<double>(column) - 0.5);
    const double v_off = std::abs(v_cells - static_cast<double>(row) - 0.5);
    unsure += (u_off > v_off ? u_off : v_off) > 0.5 - rounding ? 1 : 0;
    keys[i] = packed_cell(partner ? npix - row : row, half) << row_shift | packed_cell(partner ? npix - column : column, half);
  }
  return unsure == 0;
}

template <typename Real>
void locate_cells(const Real* u, const Real* v, std::int64_t count, const CellRule& rule, std::uint32_t* keys) {
  for (std::int64_t begin = 0; begin < count; begin += located_samples) {
    const auto samples = count - begin < located_samples ? count - begin : located_samples;
    const bool sure = rule.partner ? locate_by_product<true>(u + begin, v + begin, samples, rule, keys + begin)
                                   : locate_by_product<false>(u + begin, v + begin, samples, rule, keys + begin);
    for (auto i = begin; !sure && i < begin + samples; ++i) {
      const auto column = cell_by_division(static_cast<double>(u[i]), rule);
      keys[i] = cell_by_division(static_cast<double>(v[i]), rule) << rule.row_shift | column;
    }
  }
}

void locate(const CoordinateBlock& coordinates, std::int64_t count, const CellRule& rule, std::uint32_t* keys) {
  if (coordinates.are_double) {
    locate_cells(static_cast<const double*>(coordinates.u), static_cast<const double*>(coordinates.v), count, rule, keys);
  } else {
    locate_cells(static_cast<const float*>(coordinates.u), static_cast<const float*>(coordinates.v), count, rule, keys);
  }
}

void count(std::uint32_t* __restrict keys, std::int64_t samples, const BucketRule& rule, std::uint32_t* __restrict counts) {
  const auto first = rule.first_key, last = rule.last_key, outside = rule.buckets << rule.shift;
  const auto shift = rule.shift;
  for (std::int64_t i = 0; i < samples; ++i) {
    const auto key = keys[i] - first;
    keys[i] = key <= last ? key : outside;
  }
  for (std::int64_t i = 0; i < samples; ++i) ++counts[keys[i] >> shift];
}

/// Samples come from memory, where the processor sees no further ahead than a page.
constexpr std::int64_t bytes_ahead = 2048;
template <typename T>
inline void prefetch_ahead(const T* values) {
  __builtin_prefetch(reinterpret_cast<const char*>(values) + bytes_ahead, 0, 2);
}

/// Asks for the line behind the one that is written to.
template <typename T>
inline void prefetch_next_line(T* written) {
  __builtin_prefetch(reinterpret_cast<char*>(written) + 64, 1);
}

template <typename Real, typename Weight, typename Value>
inline void scatter_each(const std::uint32_t* keys, const Weight* weights, const Value* data, Real sign, std::int64_t begin,
                         std::int64_t end, int shift, std::uint32_t* positions, SortedSample<Real>* sorted) {
  for (auto i = begin; i < end; ++i) {
    if (i % 8 == 0) {
      prefetch_ahead(weights + i);
      prefetch_ahead(data + 2 * i);
    }
    sorted[positions[keys[i] >> shift]++] = {static_cast<Real>(data[2 * i]), sign * static_cast<Real>(data[2 * i + 1]),
                                             static_cast<Real>(weights[i]), keys[i]};
  }
}

template <typename Real, typename Weight, typename Value>
void scatter_samples(const std::uint32_t* keys, const Weight* weights, const Value* data, double imag_sign, std::int64_t samples,
                     int shift, std::uint32_t* positions, SortedSample<Real>* sorted) {
  scatter_each(keys, weights, data, static_cast<Real>(imag_sign), 0, samples, shift, positions, sorted);
}

#if defined(__SSE2__)
/// Eight at a time, each sorted sample written at once.
template <>
void scatter_samples(const std::uint32_t* keys, const float* weights, const float* data, double imag_sign, std::int64_t samples,
                     int shift, std::uint32_t* positions, SortedSample<float>* sorted) {
  const auto sign = static_cast<float>(imag_sign);
  const auto signs = _mm_setr_ps(1, sign, 1, sign);
  const auto put = [&](std::int64_t i, __m128 sample) {
    auto* to = &sorted[positions[keys[i] >> shift]++].real;
    _mm_storeu_ps(to, sample);
    prefetch_next_line(to);
  };
  const auto put_four = [&](std::int64_t i) {
    const auto weight = _mm_loadu_ps(weights + i);
    const auto key = _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(keys + i)));
    const auto first = _mm_mul_ps(signs, _mm_loadu_ps(data + 2 * i)), second = _mm_mul_ps(signs, _mm_loadu_ps(data + 2 * i + 4));
    const auto low = _mm_unpacklo_ps(weight, key), high = _mm_unpackhi_ps(weight, key);
    put(i, _mm_movelh_ps(first, low));
    put(i + 1, _mm_movehl_ps(low, first));
    put(i + 2, _mm_movelh_ps(second, high));
    put(i + 3, _mm_movehl_ps(high, second));
  };
  std::int64_t i = 0;
  for (; i + 8 <= samples; i += 8) {
    prefetch_ahead(weights + i);
    prefetch_ahead(data + 2 * i);
    put_four(i);
    put_four(i + 4);
  }
  scatter_each(keys, weights, data, sign, i, samples, shift, positions, sorted);
}

template <>
void scatter_samples(const std::uint32_t* keys, const double* weights, const double* data, double imag_sign, std::int64_t samples,
                     int shift, std::uint32_t* positions, SortedSample<double>* sorted) {
  const auto signs = _mm_setr_pd(1, imag_sign);
  for (std::int64_t i = 0; i < samples; ++i) {
    if (i % 4 == 0) {
      prefetch_ahead(weights + i);
      prefetch_ahead(data + 2 * i);
    }
    auto* to = &sorted[positions[keys[i] >> shift]++].real;
    const auto key = _mm_castsi128_pd(_mm_cvtsi32_si128(static_cast<int>(keys[i])));
    _mm_storeu_pd(to, _mm_mul_pd(signs, _mm_loadu_pd(data + 2 * i)));
    _mm_storeu_pd(to + 2, _mm_unpacklo_pd(_mm_load_sd(weights + i), key));
    prefetch_next_line(to);
  }
}
#endif

void scatter(const std::uint32_t* keys, const SampleBlock& block, std::int64_t samples, const BucketRule& rule,
             std::uint32_t* positions, void* sorted) {
  const auto* single_weights = static_cast<const float*>(block.weights);
  const auto* double_weights = static_cast<const double*>(block.weights);
  const auto* single_data = static_cast<const float*>(block.data);
  const auto* double_data = static_cast<const double*>(block.data);
  auto* narrow = static_cast<SortedSample<float>*>(sorted);
  auto* wide = static_cast<SortedSample<double>*>(sorted);
  const auto sign = block.imag_sign;
  if (block.weights_are_double && block.data_are_double) {
    scatter_samples(keys, double_weights, double_data, sign, samples, rule.shift, positions, wide);
  } else if (block.weights_are_double) {
    scatter_samples(keys, double_weights, single_data, sign, samples, rule.shift, positions, wide);
  } else if (block.data_are_double) {
    scatter_samples(keys, single_weights, double_data, sign, samples, rule.shift, positions, wide);
  } else {
    scatter_samples(keys, single_weights, single_data, sign, samples, rule.shift, positions, narrow);
  }
}

/// Samples whose cells are looked up before they are added: entries and totals arrive meanwhile.
constexpr std::int64_t group_samples = 256;
static_assert(group_samples % 4 == 0);

/// Where the samples of a group go.
struct Group {
  std::uint32_t entries[group_samples];
  std::uint32_t totals[group_samples] = {};
  alignas(64) CellOrigin origins[group_samples] = {};
};

template <typename Real>
inline bool find_group(CellTable& table, const SortedSample<Real>* samples, std::int64_t size, Group& group) {
  const auto* directory = table.directory;
  auto* memory = table.memory;
  const auto in_leaf = (1U << table.leaf_shift) - 1;
  const auto leaf_shift = table.leaf_shift;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < size; ++k) {
    const auto key = samples[k].key;
    const auto place = directory[key >> leaf_shift] + CellTable::entry_doubles * (key & in_leaf);
    group.entries[k] = place;
    __builtin_prefetch(memory + place, 1);
  }
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < size; ++k) {
    auto* entry = reinterpret_cast<CellEntry*>(memory + group.entries[k]);
    if (entry->totals == CellTable::none) [[unlikely]] {
      const auto place = table.insert(samples[k].key, static_cast<double>(samples[k].real), static_cast<double>(samples[k].imag));
      if (place == 0) return false;
      entry = reinterpret_cast<CellEntry*>(memory + place);
    }
    const auto totals = entry->totals;
    ++entry->samples;
    __builtin_prefetch(memory + totals, 1);
    group.totals[k] = totals;
    group.origins[k] = entry->origin;
  }
  return true;
}

template <typename Real>
inline void prefetch_next_group(const SortedSample<Real>* sample) {
  __builtin_prefetch(sample + group_samples);
}

#if defined(__AVX512F__)

/// Real and imaginary parts of four samples, and their weights, each twice.
inline void load_four(const SortedSample<float>* samples, __m512d& values, __m512d& weights) {
  const auto numbers = _mm512_loadu_ps(samples);
  values = __builtin_convertvector(__builtin_shufflevector(numbers, numbers, 0, 1, 4, 5, 8, 9, 12, 13), __m512d);
  weights = __builtin_convertvector(__builtin_shufflevector(numbers, numbers, 2, 2, 6, 6, 10, 10, 14, 14), __m512d);
}
inline void load_four(const SortedSample<double>* samples, __m512d& values, __m512d& weights) {
  const auto* numbers = reinterpret_cast<const double*>(samples);
  const auto first = _mm512_loadu_pd(numbers), second = _mm512_loadu_pd(numbers + 8);
  values = _mm512_permutex2var_pd(first, _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13), second);
  weights = _mm512_permutex2var_pd(first, _mm512_setr_epi64(2, 2, 6, 6, 10, 10, 14, 14), second);
}

inline void add_to(double* totals, __m512d contribution) {
  _mm512_store_pd(totals, _mm512_add_pd(_mm512_load_pd(totals), contribution));
}

/// Four samples at a time: their contributions are computed sum by sum and turned into one register for each sample. What
/// lies beyond the last sample is computed (CellKernels::slack), but not added.
template <typename Real>
inline void add_group(double* memory, const SortedSample<Real>* samples, std::int64_t size, const Group& group) {
  const auto add_four = [&](std::int64_t k, std::int64_t left) {
    __m512d value, weight;
    for (std::size_t ahead = 0; ahead < sizeof(Real); ahead += 4) prefetch_next_group(samples + k + ahead / 2);
    load_four(samples + k, value, weight);
    const auto d = _mm512_sub_pd(value, __builtin_convertvector(_mm256_load_ps(&group.origins[k].real), __m512d));
    // GCC 12 warns of an uninitialised value in the form without a mask; the code is the same.
    const auto root = _mm512_maskz_sqrt_pd(0xff, weight), weighted = _mm512_mul_pd(weight, d);
    const auto rooted = _mm512_mul_pd(root, d), squares = _mm512_mul_pd(weighted, d);
    const auto plain = _mm512_mask_blend_pd(0b10101010, weight, root);
    const auto low = __builtin_shufflevector(plain, weighted, 0, 1, 2, 3, 8, 9, 10, 11),
               low_too = __builtin_shufflevector(rooted, squares, 0, 1, 2, 3, 8, 9, 10, 11);
    const auto high = __builtin_shufflevector(plain, weighted, 4, 5, 6, 7, 12, 13, 14, 15),
               high_too = __builtin_shufflevector(rooted, squares, 4, 5, 6, 7, 12, 13, 14, 15);
    add_to(memory + group.totals[k], __builtin_shufflevector(low, low_too, 0, 1, 4, 5, 8, 9, 12, 13));
    if (left > 1) add_to(memory + group.totals[k + 1], __builtin_shufflevector(low, low_too, 2, 3, 6, 7, 10, 11, 14, 15));
    if (left > 2) add_to(memory + group.totals[k + 2], __builtin_shufflevector(high, high_too, 0, 1, 4, 5, 8, 9, 12, 13));
    if (left > 3) add_to(memory + group.totals[k + 3], __builtin_shufflevector(high, high_too, 2, 3, 6, 7, 10, 11, 14, 15));
  };
  std::int64_t k = 0;
  for (; k + 4 <= size; k += 4) add_four(k, 4);
  if (k < size) add_four(k, size - k);
}

#else

// A complex number in one register: what the compiler makes of pairs of doubles is slower.
using Pair = double __attribute__((vector_size(16)));

template <typename Real>
inline void add_group(double* memory, const SortedSample<Real>* samples, std::int64_t size, const Group& group) {
  double weights[group_samples], roots[group_samples];
  for (std::int64_t k = 0; k < size; ++k) weights[k] = static_cast<double>(samples[k].weight);
  for (std::int64_t k = 0; k < size; ++k) roots[k] = std::sqrt(weights[k]);
  for (std::int64_t k = 0; k < size; ++k) {
    prefetch_next_group(samples + k);
    auto* sums = reinterpret_cast<Pair*>(memory + group.totals[k]);
    const Pair value{static_cast<double>(samples[k].real), static_cast<double>(samples[k].imag)};
    const Pair origin{static_cast<double>(group.origins[k].real), static_cast<double>(group.origins[k].imag)};
    const Pair d = value - origin, weighted = weights[k] * d;
    sums[0] += Pair{weights[k], roots[k]};
    sums[1] += weighted;
    sums[2] += roots[k] * d;
    sums[3] += weighted * d;
  }
}

#endif

template <typename Real>
void accumulate_sorted(CellTable& table, const SortedSample<Real>* samples, std::int64_t size) {
  Group group;
  for (std::int64_t begin = 0; begin < size; begin += group_samples) {
    const auto part = size - begin < group_samples ? size - begin : group_samples;
    if (!find_group(table, samples + begin, part, group)) return;
    add_group(table.memory, samples + begin, part, group);
  }
}

void accumulate(CellTable& table, const void* sorted, std::int64_t begin, std::int64_t end, bool are_double) {
  if (are_double) accumulate_sorted(table, static_cast<const SortedSample<double>*>(sorted) + begin, end - begin);
  else accumulate_sorted(table, static_cast<const SortedSample<float>*>(sorted) + begin, end - begin);
}

/// Population standard deviation of (V - average) sqrt(w), from sums about the cell's origin; e = origin - average.
inline double deviation(double root_weighted, double root_weight, double squares, double weighted, double weight, double e,
                        double samples) {
  const double mean = (root_weighted + e * root_weight) / samples;
  const double variance = (squares + e * (2 * weighted + e * weight)) / samples - mean * mean;
  return std::sqrt(variance > 0 ? variance : 0);
}

/// The sums of some cells, each an array.
struct CellColumns {
  static constexpr auto most = CellResults::most;

  double weight[most], root_weight[most], samples[most];
  double weighted[2][most], root_weighted[2][most], squares[2][most], origin[2][most];
};

inline void gather(const double* memory, const std::uint32_t* entries, std::int64_t count, CellColumns& columns) {
  const auto entry_at = [&](std::int64_t i) { return reinterpret_cast<const CellEntry*>(memory + entries[i]); };
  for (std::int64_t i = 0; i < count; ++i) __builtin_prefetch(memory + entry_at(i)->totals);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& entry = *entry_at(i);
    const auto& totals = *reinterpret_cast<const CellTotals*>(memory + entry.totals);
    columns.weight[i] = totals.weight;
    columns.root_weight[i] = totals.root_weight;
    columns.samples[i] = static_cast<double>(entry.samples);
    for (int part = 0; part < 2; ++part) {
      columns.weighted[part][i] = totals.weighted[part];
      columns.root_weighted[part][i] = totals.root_weighted[part];
      columns.squares[part][i] = totals.squares[part];
    }
    columns.origin[0][i] = static_cast<double>(entry.origin.real);
    columns.origin[1][i] = static_cast<double>(entry.origin.imag);
  }
}

inline void conclude_part(const CellColumns& columns, int part, std::int64_t count, double* __restrict averages,
                          double* __restrict scatter) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double offset = columns.weighted[part][i] / columns.weight[i];
    averages[i] = columns.origin[part][i] + offset;
    const double sigma = deviation(columns.root_weighted[part][i], columns.root_weight[i], columns.squares[part][i],
                                   columns.weighted[part][i], columns.weight[i], -offset, columns.samples[i]);
    scatter[i] = columns.samples[i] > 1 ? sigma : -1;
  }
}

void conclude(const double* memory, const std::uint32_t* entries, std::int64_t count, CellResults& results) {
  CellColumns columns;
  gather(memory, entries, count, columns);
  conclude_part(columns, 0, count, results.real, results.real_scatter);
  conclude_part(columns, 1, count, results.imag, results.imag_scatter);
  for (std::int64_t i = 0; i < count; ++i) results.weight[i] = columns.weight[i];
  for (std::int64_t i = 0; i < count; ++i) results.samples[i] = static_cast<std::int64_t>(columns.samples[i]);
}

}  // namespace

namespace MPOL_ISA {
CellKernels cell_kernels() { return {locate, count, scatter, accumulate, conclude}; }
}  // namespace MPOL_ISA

}  // namespace mpol::gridding
