#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::io {

using torch::Tensor;

/// Rows of data that have the same channels: a spectral window, or what corresponds to one.
struct ReaderWindow {
  std::int64_t id = 0;                       ///< as the file numbers it
  std::int64_t rows = 0;                     ///< that are read, whether anything of them is kept or not
  std::vector<std::int64_t> channels;        ///< the selected ones, by their numbers in the file
  Tensor frequencies;                        ///< of these, (nchan) float64 Hz, or undefined
  std::vector<double> wavelengths_per_unit;  ///< of these: what u and v of a block are multiplied by
  double channel_width = 0;                  ///< Hz, 0: unknown
  std::string frame;                         ///< of the frequencies, as FITS names it (LSRK, TOPOCENT, …); empty: unknown

  std::int64_t nchan() const { return static_cast<std::int64_t>(channels.size()); }  ///< the selected ones
};

/// What a reader gives, known before the first block.
struct ReaderShape {
  std::vector<ReaderWindow> windows;  ///< in the order in which they are read
  Observation observation;            ///< phase centre, object, telescope, … as far as the file says
  std::string column;                 ///< the data were taken from, and why; empty: there was no choice
  std::vector<std::string> notes;     ///< what a user should know of how they are read, a line each

  /// Samples of all rows, whether they are kept or not.
  std::int64_t samples() const;
};

/// Samples that were left out, each counted once, by the first reason that holds in this order; a sample is one channel of one
/// row, its hands combined.
struct DroppedSamples {
  std::int64_t flagged_rows = 0;      ///< of rows that are flagged as a whole
  std::int64_t autocorrelations = 0;  ///< of an antenna with itself
  std::int64_t flagged = 0;           ///< flagged in a hand that is needed
  std::int64_t without_weight = 0;    ///< weight <= 0
  std::int64_t not_finite = 0;        ///< a value, its weight or its u, v
  std::int64_t incomplete_rows = 0;   ///< in a cube: good samples of rows that lack another channel

  std::int64_t total() const;  ///< all of them
  /// The same counts for the same reasons.
  friend bool operator==(const DroppedSamples&, const DroppedSamples&) = default;
};

/// Some rows of one window.
struct RowBlock {
  std::int64_t window = 0;  ///< index into ReaderShape::windows
  Tensor u, v;              ///< (rows) float64; times wavelengths_per_unit of a channel they are wavelengths
  Tensor data;              ///< (rows, nchan) complex64 or complex128, Jy, in this library's sign convention
  Tensor weights;           ///< (rows, nchan) float32 or float64, Jy^-2; 0 where a sample is left out
  Tensor observations;      ///< (rows) int32, which observation each belongs to, or undefined
  Tensor times;             ///< (rows) float64, s from any moment; undefined: unknown, or not asked for
  Tensor
      tracks;  ///< (rows, 5) int64, equal for what may be averaged in time: two antennas, field, scan, observation; or undefined
};

/// Visibilities, block by block: whoever reads them this way never holds more of a file than a block. There is one for each kind
/// of file; what to make of the samples is up to `collect_samples` and `collect_cube`.
class VisibilityReader {
 public:
  virtual ~VisibilityReader() = default;

  virtual const ReaderShape& shape() const = 0;  ///< known before the first block, the same until the last
  /// The next rows, of one window; nothing when all were given. Tensors may be used again for the next block.
  /// @throws FileError when the file cannot be read to its end
  virtual std::optional<RowBlock> next() = 0;
  /// What was left out of the blocks so far.
  virtual const DroppedSamples& dropped() const = 0;
};

}  // namespace mpol::io
