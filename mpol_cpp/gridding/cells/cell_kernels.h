#pragma once

#include <cstdint>

#include <mpol_cpp/ops/simd/isa.h>

namespace mpol::gridding {

struct CellTable;

/// Samples [0, count) of one block, in the dtypes they are held in. Weights are real, data interleaved complex.
struct SampleBlock {
  const void* weights;
  const void* data;
  bool weights_are_double;
  bool data_are_double;
  double imag_sign;  // -1 for the Hermitian partners of the samples
};

/// u and v of some samples as they are held.
struct CoordinateBlock {
  const void* u;
  const void* v;
  bool are_double;
};

/// How u and v become keys: each coordinate's cell in ground order, counted from `origin` on and around at `width`, and then
/// row * width + column.
struct CellRule {
  double scale;  // to wavelengths
  double du;
  std::int32_t npix;
  std::int32_t origin;
  std::int32_t width;
  bool partner;  // the cell of the Hermitian partner, N - i, instead of the cell i
};

/// How keys become buckets: the cells of a bucket fit into a near cache.
struct BucketRule {
  std::uint32_t first_key;  // of the strip
  std::uint32_t last_key;   // of the strip, counted from its first
  int shift;                // from a place to its bucket
  std::uint32_t buckets;
};

/// A sample among those of its bucket.
template <typename Real>
struct SortedSample {
  Real real, imag, weight;
  std::uint32_t place;  // as if its cell's number (CellTable) were its key in the strip; `accumulate` corrects it by ranks
};

/// What the sums of some cells say.
struct CellResults {
  static constexpr std::int64_t most = 64;

  double real[most], imag[most];  // averages
  double weight[most];
  std::int64_t samples[most];
  double real_scatter[most], imag_scatter[most];  // in sigma; -1 for a cell with one sample
};

/// The inner loops of gridding, compiled for one instruction set.
struct CellKernels {
  /// keys[i] of the cell of (u[i], v[i]), by GridCoords::uv_cell's rule.
  void (*locate)(const CoordinateBlock& coordinates, std::int64_t samples, const CellRule& rule, std::uint32_t* keys);
  /// Turns keys into places, those outside of the strip into one of bucket rule.buckets, and adds the number of samples of
  /// each bucket to counts.
  void (*count)(std::uint32_t* keys, std::int64_t samples, const BucketRule& rule, std::uint32_t* counts);
  /// Puts the samples of each bucket, in order, from positions[bucket] on, which it advances. They are SortedSample<float>, or
  /// <double> where weights or data are, on multiples of their size.
  void (*scatter)(const std::uint32_t* places, const SampleBlock& block, std::int64_t samples, const BucketRule& rule,
                  char** positions);
  /// Adds sorted samples [begin, end) to their cells, in order.
  void (*accumulate)(const CellTable& table, void* sorted, std::int64_t begin, std::int64_t end, bool are_double);
  /// The results of up to CellResults::most cells of a table, given their numbers.
  void (*conclude)(const CellTable& table, const std::uint32_t* cells, std::int64_t count, CellResults& results);
  /// Elements behind the last sorted sample that `accumulate` reads.
  static constexpr std::int64_t slack = 4;
};

CellKernels cell_kernels(Isa isa);

}  // namespace mpol::gridding
