// Compiled once per instruction set: everything here is in an unnamed namespace but the one function that names it.
#include <cmath>
#include <limits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <mpol_cpp/gridding/cells/cell_kernels.h>
#include <mpol_cpp/gridding/cells/cell_table.h>

namespace mpol::gridding {
namespace {

inline std::uint32_t index_in(const CellRule& rule, std::int32_t ground) {
  const auto offset = ground - rule.origin;
  return static_cast<std::uint32_t>(offset >= 0 ? offset : offset + rule.width);
}

/// The index of the cell of a coordinate by the division that decides (GridCoords::uv_cell). Truncation is floor here, since
/// everything on the grid has u/du + npix/2 + 1/2 >= 1. A coordinate within rounding of the grid's outer edge belongs to the
/// last cell.
inline std::uint32_t cell_by_division(double u, const CellRule& rule) {
  const double position = u * rule.scale / rule.du + 0.5 * rule.npix + 0.5;
  const auto cell = static_cast<std::int32_t>(position);
  const auto ground = cell < rule.npix ? cell : rule.npix - 1;
  return index_in(rule, rule.partner ? rule.npix - ground : ground);
}

/// Keys by multiplication, which is several times as fast as the division. A coordinate in units of cells, from the lower
/// edge of index 0, becomes a number of 32 bits with 15 bits behind the point: the sum with 1.5 * 2^37 rounds to these and
/// has them as its lowest bits. The two rules differ by rounding only, 4e-11 cells at most: the division is asked where all
/// bits behind the point are zero.
struct FixedPoint {
  static constexpr int bits = 15;
  static constexpr std::uint32_t fraction_mask = (1U << bits) - 1;

  explicit FixedPoint(const CellRule& rule)
      : cells((rule.partner ? -rule.scale : rule.scale) / rule.du),
        addend(0x1.8p37 + 0.5 + (0.5 * rule.npix - rule.origin)),
        width(static_cast<std::uint32_t>(rule.width)) {}

  template <typename Real>
  std::uint32_t operator()(Real u) const {
    return static_cast<std::uint32_t>(__builtin_bit_cast(std::uint64_t, static_cast<double>(u) * cells + addend));
  }
  /// The index of a number; a negative one has `width` added, which makes it the smaller of the two as an unsigned number.
  std::uint32_t index(std::uint32_t number) const {
    const auto index = static_cast<std::uint32_t>(static_cast<std::int32_t>(number) >> bits), around = index + width;
    return index < around ? index : around;
  }

  double cells, addend;
  std::uint32_t width;
};

constexpr std::int64_t located_samples = 64;  // between two looks for coordinates that need the division

template <typename Real>
inline bool locate_by_product(const Real* __restrict u, const Real* __restrict v, std::int64_t count,
                              const FixedPoint& fixed_point, std::uint32_t* __restrict keys) {
  std::uint32_t smallest = FixedPoint::fraction_mask;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto column = fixed_point(u[i]), row = fixed_point(v[i]);
    const auto u_fraction = column & FixedPoint::fraction_mask, v_fraction = row & FixedPoint::fraction_mask;
    const auto fraction = u_fraction < v_fraction ? u_fraction : v_fraction;
    smallest = fraction < smallest ? fraction : smallest;
    keys[i] = fixed_point.index(row) * fixed_point.width + fixed_point.index(column);
  }
  return smallest > 0;
}

template <typename Real>
void locate_cells(const Real* u, const Real* v, std::int64_t count, const CellRule& rule, std::uint32_t* keys) {
  const FixedPoint fixed_point(rule);
  const auto unsure = [&](Real coordinate) { return (fixed_point(coordinate) & FixedPoint::fraction_mask) == 0; };
  for (std::int64_t begin = 0; begin < count; begin += located_samples) {
    const auto samples = count - begin < located_samples ? count - begin : located_samples;
    if (locate_by_product(u + begin, v + begin, samples, fixed_point, keys + begin)) [[likely]]
      continue;
    for (auto i = begin; i < begin + samples; ++i) {
      if (!unsure(u[i]) && !unsure(v[i])) continue;
      const auto column = cell_by_division(static_cast<double>(u[i]), rule);
      keys[i] = cell_by_division(static_cast<double>(v[i]), rule) * static_cast<std::uint32_t>(rule.width) + column;
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
    keys[i] = key <= last ? key << CellTable::place_shift : outside;
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

/// Where the next sorted sample of each bucket goes.
template <typename Real>
struct SortedPlaces {
  SortedSample<Real>* next(std::uint32_t place) const {
    auto& position = positions[place >> shift];
    auto* to = reinterpret_cast<SortedSample<Real>*>(position);
    position += sizeof(SortedSample<Real>);
    return to;
  }

  int shift;
  char** positions;
};

template <typename Real, typename Weight, typename Value>
inline void scatter_each(const std::uint32_t* places, const Weight* weights, const Value* data, Real sign, std::int64_t begin,
                         std::int64_t end, const SortedPlaces<Real>& sorted) {
  for (auto i = begin; i < end; ++i) {
    if (i % 8 == 0) {
      prefetch_ahead(weights + i);
      prefetch_ahead(data + 2 * i);
    }
    *sorted.next(places[i]) = {static_cast<Real>(data[2 * i]), sign * static_cast<Real>(data[2 * i + 1]),
                               static_cast<Real>(weights[i]), places[i]};
  }
}

template <typename Real, typename Weight, typename Value>
void scatter_samples(const std::uint32_t* places, const Weight* weights, const Value* data, double imag_sign,
                     std::int64_t samples, const SortedPlaces<Real> sorted) {
  scatter_each(places, weights, data, static_cast<Real>(imag_sign), 0, samples, sorted);
}

#if defined(__SSE2__)
// Some at a time, each sorted sample written at once.
template <>
void scatter_samples(const std::uint32_t* places, const float* weights, const float* data, double imag_sign, std::int64_t samples,
                     const SortedPlaces<float> sorted) {
  const auto sign = static_cast<float>(imag_sign);
  const auto signs = _mm_setr_ps(1, sign, 1, sign);
  const auto put = [&](std::int64_t i, __m128 sample) {
    auto* to = &sorted.next(places[i])->real;
    _mm_store_ps(to, sample);
    prefetch_next_line(to);
  };
  const auto put_four = [&](std::int64_t i) {
    const auto weight = _mm_loadu_ps(weights + i);
    const auto place = _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(places + i)));
    const auto first = _mm_mul_ps(signs, _mm_loadu_ps(data + 2 * i)), second = _mm_mul_ps(signs, _mm_loadu_ps(data + 2 * i + 4));
    const auto low = _mm_unpacklo_ps(weight, place), high = _mm_unpackhi_ps(weight, place);
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
  scatter_each(places, weights, data, sign, i, samples, sorted);
}

template <>
void scatter_samples(const std::uint32_t* places, const double* weights, const double* data, double imag_sign,
                     std::int64_t samples, const SortedPlaces<double> sorted) {
  const auto signs = _mm_setr_pd(1, imag_sign);
  const auto put = [&](std::int64_t i, __m128d weight_and_place) {
    auto* to = &sorted.next(places[i])->real;
    const auto value = _mm_mul_pd(signs, _mm_loadu_pd(data + 2 * i));
#if defined(__AVX__)
    _mm256_store_pd(to, _mm256_insertf128_pd(_mm256_castpd128_pd256(value), weight_and_place, 1));
#else
    _mm_store_pd(to, value);
    _mm_store_pd(to + 2, weight_and_place);
#endif
    prefetch_next_line(to);
  };
  const auto put_two = [&](std::int64_t i) {
    const auto weight = _mm_loadu_pd(weights + i);
    const auto narrow = _mm_loadl_epi64(reinterpret_cast<const __m128i_u*>(places + i));
    const auto place = _mm_castsi128_pd(_mm_unpacklo_epi32(narrow, _mm_setzero_si128()));
    put(i, _mm_unpacklo_pd(weight, place));
    put(i + 1, _mm_unpackhi_pd(weight, place));
  };
  std::int64_t i = 0;
  for (; i + 4 <= samples; i += 4) {
    prefetch_ahead(weights + i);
    prefetch_ahead(data + 2 * i);
    put_two(i);
    put_two(i + 2);
  }
  scatter_each(places, weights, data, imag_sign, i, samples, sorted);
}
#endif

void scatter(const std::uint32_t* places, const SampleBlock& block, std::int64_t samples, const BucketRule& rule,
             char** positions) {
  const auto* single_weights = static_cast<const float*>(block.weights);
  const auto* double_weights = static_cast<const double*>(block.weights);
  const auto* single_data = static_cast<const float*>(block.data);
  const auto* double_data = static_cast<const double*>(block.data);
  const SortedPlaces<float> narrow{rule.shift, positions};
  const SortedPlaces<double> wide{rule.shift, positions};
  const auto sign = block.imag_sign;
  if (block.weights_are_double && block.data_are_double) {
    scatter_samples(places, double_weights, double_data, sign, samples, wide);
  } else if (block.weights_are_double) {
    scatter_samples(places, double_weights, single_data, sign, samples, wide);
  } else if (block.data_are_double) {
    scatter_samples(places, single_weights, double_data, sign, samples, wide);
  } else {
    scatter_samples(places, single_weights, single_data, sign, samples, narrow);
  }
}

/// Samples whose cells are asked for before they are added: entries and totals arrive meanwhile.
constexpr std::int64_t group_samples = 256;
static_assert(group_samples % 4 == 0);

inline CellEntry& entry_at(const CellTable& table, std::uint64_t place) {
  return *reinterpret_cast<CellEntry*>(reinterpret_cast<char*>(table.entries) + place);
}
inline double* totals_at(const CellTable& table, std::uint64_t place) {
  return reinterpret_cast<double*>(reinterpret_cast<char*>(table.totals) + CellTable::totals_bytes_per_place * place);
}

/// Turns the places of keys into those of their cells.
template <typename Real>
inline void place_by_rank(const RankWord* ranks, SortedSample<Real>* samples, std::int64_t size) {
  const auto first_rank = ranks->before;
  for (std::int64_t k = 0; k < size; ++k) {
    const auto key = samples[k].place >> CellTable::place_shift;
    const auto& word = ranks[key / RankWord::keys];
    const auto before = word.bits & ((std::uint64_t{1} << key % RankWord::keys) - 1);
    samples[k].place = (word.before - first_rank + static_cast<std::uint32_t>(__builtin_popcountll(before)))
                       << CellTable::place_shift;
  }
}

/// A float near the value, whatever the value.
inline float rounded(double value) {
  return std::abs(value) < static_cast<double>(std::numeric_limits<float>::max()) ? static_cast<float>(value) : 0.0F;
}

/// Counts a group of samples, and begins the sums of a cell when its first sample comes.
template <typename Real>
inline void count_group(const CellTable table, const SortedSample<Real>* samples, std::int64_t size) {
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < size; ++k) {
    __builtin_prefetch(totals_at(table, samples[k].place), 1);
    auto& entry = entry_at(table, samples[k].place);
    if (__builtin_usub_overflow(entry.minus_samples, 1U, &entry.minus_samples)) [[unlikely]] {
      entry.origin = {rounded(static_cast<double>(samples[k].real)), rounded(static_cast<double>(samples[k].imag))};
      *reinterpret_cast<CellTotals*>(totals_at(table, samples[k].place)) = {};
    }
  }
}

template <typename Real>
inline void prefetch_next_group(const SortedSample<Real>* sample) {
  __builtin_prefetch(sample + group_samples);
}

#if defined(__AVX512F__)

// GCC 12 warns of an uninitialised value in the forms without a mask; the code is the same.
inline __m512d widened(__m256 values) { return _mm512_maskz_cvtps_pd(0xff, values); }
inline __m512d square_roots(__m512d values) { return _mm512_maskz_sqrt_pd(0xff, values); }

/// Real and imaginary parts of four samples, and their weights, each twice.
inline void load_four(const SortedSample<float>* samples, __m512d& values, __m512d& weights) {
  const auto numbers = _mm512_loadu_ps(samples);
  values = widened(__builtin_shufflevector(numbers, numbers, 0, 1, 4, 5, 8, 9, 12, 13));
  weights = widened(__builtin_shufflevector(numbers, numbers, 2, 2, 6, 6, 10, 10, 14, 14));
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

/// The origins of two cells.
inline __m128 load_origins(const CellEntry& first, const CellEntry& second) {
  const auto low = _mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&first.origin)));
  return _mm_loadh_pi(low, reinterpret_cast<const __m64*>(&second.origin));
}

/// Four samples at a time: their contributions are computed sum by sum and turned into one register for each sample. What
/// lies beyond the last sample is computed (CellKernels::slack), but not added.
template <typename Real>
inline void add_group(const CellTable table, const SortedSample<Real>* samples, std::int64_t size) {
  const auto add_four = [&](std::int64_t k, std::int64_t left) {
    const auto entry = [&](std::int64_t i) -> const CellEntry& { return entry_at(table, i < left ? samples[k + i].place : 0); };
    const auto totals = [&](std::int64_t i) { return totals_at(table, samples[k + i].place); };
    __m512d value, weight;
    for (std::size_t ahead = 0; ahead < sizeof(Real); ahead += 4) prefetch_next_group(samples + k + ahead / 2);
    load_four(samples + k, value, weight);
    const auto low_origins = load_origins(entry(0), entry(1)), high_origins = load_origins(entry(2), entry(3));
    const auto d = _mm512_sub_pd(value, widened(__builtin_shufflevector(low_origins, high_origins, 0, 1, 2, 3, 4, 5, 6, 7)));
    const auto root = square_roots(weight), weighted = _mm512_mul_pd(weight, d);
    const auto rooted = _mm512_mul_pd(root, d), squares = _mm512_mul_pd(weighted, d);
    const auto plain = _mm512_mask_blend_pd(0b10101010, weight, root);
    const auto low = __builtin_shufflevector(plain, weighted, 0, 1, 2, 3, 8, 9, 10, 11),
               low_too = __builtin_shufflevector(rooted, squares, 0, 1, 2, 3, 8, 9, 10, 11);
    const auto high = __builtin_shufflevector(plain, weighted, 4, 5, 6, 7, 12, 13, 14, 15),
               high_too = __builtin_shufflevector(rooted, squares, 4, 5, 6, 7, 12, 13, 14, 15);
    add_to(totals(0), __builtin_shufflevector(low, low_too, 0, 1, 4, 5, 8, 9, 12, 13));
    if (left > 1) add_to(totals(1), __builtin_shufflevector(low, low_too, 2, 3, 6, 7, 10, 11, 14, 15));
    if (left > 2) add_to(totals(2), __builtin_shufflevector(high, high_too, 0, 1, 4, 5, 8, 9, 12, 13));
    if (left > 3) add_to(totals(3), __builtin_shufflevector(high, high_too, 2, 3, 6, 7, 10, 11, 14, 15));
  };
  std::int64_t k = 0;
  for (; k + 4 <= size; k += 4) add_four(k, 4);
  if (k < size) add_four(k, size - k);
}

#else

// A complex number in one register: what the compiler makes of pairs of doubles is slower.
using Pair = double __attribute__((vector_size(16)));

template <typename Real>
inline void add_group(const CellTable table, const SortedSample<Real>* samples, std::int64_t size) {
  double weights[group_samples], roots[group_samples];
  for (std::int64_t k = 0; k < size; ++k) weights[k] = static_cast<double>(samples[k].weight);
  for (std::int64_t k = 0; k < size; ++k) roots[k] = std::sqrt(weights[k]);
  for (std::int64_t k = 0; k < size; ++k) {
    prefetch_next_group(samples + k);
    auto* sums = reinterpret_cast<Pair*>(totals_at(table, samples[k].place));
    const auto& held = entry_at(table, samples[k].place).origin;
    const Pair value{static_cast<double>(samples[k].real), static_cast<double>(samples[k].imag)};
    const Pair origin{static_cast<double>(held.real), static_cast<double>(held.imag)};
    const Pair d = value - origin, weighted = weights[k] * d;
    sums[0] += Pair{weights[k], roots[k]};
    sums[1] += weighted;
    sums[2] += roots[k] * d;
    sums[3] += weighted * d;
  }
}

#endif

template <typename Real>
void accumulate_sorted(const CellTable& table, SortedSample<Real>* samples, std::int64_t size) {
  for (std::int64_t begin = 0; begin < size; begin += group_samples) {
    const auto part = size - begin < group_samples ? size - begin : group_samples;
    if (table.ranks != nullptr) place_by_rank(table.ranks, samples + begin, part);
    count_group(table, samples + begin, part);
    add_group(table, samples + begin, part);
  }
}

void accumulate(const CellTable& table, void* sorted, std::int64_t begin, std::int64_t end, bool are_double) {
  if (are_double) accumulate_sorted(table, static_cast<SortedSample<double>*>(sorted) + begin, end - begin);
  else accumulate_sorted(table, static_cast<SortedSample<float>*>(sorted) + begin, end - begin);
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

inline void gather(const CellTable& table, const std::uint32_t* cells, std::int64_t count, CellColumns& columns) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& entry = table.entries[cells[i]];
    const auto& totals = table.totals[cells[i]];
    columns.weight[i] = totals.weight;
    columns.root_weight[i] = totals.root_weight;
    columns.samples[i] = static_cast<double>(-entry.minus_samples);
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

void conclude(const CellTable& table, const std::uint32_t* cells, std::int64_t count, CellResults& results) {
  CellColumns columns;
  gather(table, cells, count, columns);
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
