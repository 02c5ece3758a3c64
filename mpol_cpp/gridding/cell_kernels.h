#pragma once

#include <cstdint>

#include <mpol_cpp/ops/isa.h>

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

/// How u and v become keys (CellKeys).
struct CellRule {
  double scale;  // to wavelengths
  double du;
  std::int32_t npix;
  int row_shift;
  bool partner;  // the cell of the Hermitian partner, N - i, instead of the cell i
};

/// How keys become buckets of rows: those of a bucket, with all their cells, fit into a near cache.
struct BucketRule {
  std::uint32_t first_key;  // of the strip
  std::uint32_t last_key;   // of the strip, counted from its first
  int shift;
  std::uint32_t buckets;
};

/// A sample among those of its bucket.
template <typename Real>
struct SortedSample {
  Real real, imag, weight;
  std::uint32_t key;
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
  /// keys[i] of the cell of (u[i], v[i]): GridCoords::uv_cell's rule, then packed order.
  void (*locate)(const CoordinateBlock& coordinates, std::int64_t samples, const CellRule& rule, std::uint32_t* keys);
  /// Counts keys from the strip's first on, those outside of the strip as of bucket rule.buckets, and adds the number of
  /// samples of each bucket to counts.
  void (*count)(std::uint32_t* keys, std::int64_t samples, const BucketRule& rule, std::uint32_t* counts);
  /// Puts the samples of each bucket, in order, to `sorted` from positions[bucket] on, which it advances. They are
  /// SortedSample<float>, or <double> where weights or data are. The keys are those that `count` left.
  void (*scatter)(const std::uint32_t* keys, const SampleBlock& block, std::int64_t samples, const BucketRule& rule,
                  std::uint32_t* positions, void* sorted);
  /// Adds sorted samples [begin, end) to their cells, in order; stops when the table is full.
  void (*accumulate)(CellTable& table, const void* sorted, std::int64_t begin, std::int64_t end, bool are_double);
  /// The results of up to CellResults::most cells of a table with that memory, given the places of their entries.
  void (*conclude)(const double* memory, const std::uint32_t* entries, std::int64_t count, CellResults& results);
  /// Elements behind the last sorted sample that `accumulate` reads.
  static constexpr std::int64_t slack = 4;
};

CellKernels cell_kernels(Isa isa);

}  // namespace mpol::gridding
