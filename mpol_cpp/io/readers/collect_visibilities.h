#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/io/readers/visibility_reader.h>
#include <mpol_cpp/serialize/array_room.h>

namespace mpol::io {

/// Samples [begin, end) of a spectral window, or of what corresponds to one.
struct WindowRange {
  std::int64_t window = 0;          ///< its id
  std::int64_t begin = 0, end = 0;  ///< of the samples (nvis)
  double frequency = 0;             ///< the mean of its channels, Hz; 0: it is not known
};

/// What a reader gave, and which of it was left out.
struct CollectedVisibilities {
  Visibilities visibilities;        ///< those that were kept
  Tensor windows;                   ///< (nvis) int32, the id of each sample's window; undefined unless asked for
  Tensor observations;              ///< (nvis) int32, its observation; undefined unless asked for, or unknown
  Tensor times;                     ///< (nvis) float64, when it was taken, s; undefined unless asked for, or unknown
  DroppedSamples dropped;           ///< how many were left out, and why
  std::vector<WindowRange> ranges;  ///< which samples are of which window, in their order
};

/// Whether windows and observations of the samples are wanted, at 8 bytes a sample, and their times, at 8 bytes more.
enum class SampleOrigins {
  leave,      ///< only the samples are wanted
  keep,       ///< window and observation of each sample too
  with_times  ///< its time besides, as far as the reader gives it (RowTracks::read)
};

/// Bytes that may be kept of a reader's samples, whatever is left out.
double bytes_of_samples(const ReaderShape& shape);
/// The same of a cube, whose channels share u and v.
double bytes_of_cube(const ReaderShape& shape);

/// All samples as one channel, each at its own u, v in wavelengths (float64): what a continuum image is made from. The frequency
/// is the mean over the samples, if all are known. Memory: what is kept, and a block.
/// @param room  where the samples are kept; on disk there must be room for all that may be kept
/// @throws DataError when no sample is left, with the counts of what was left out
CollectedVisibilities collect_samples(VisibilityReader& reader, SampleOrigins origins = SampleOrigins::leave,
                                      const ArrayRoom& room = {});

/// One channel for each of the windows' channels, u and v in metres: what a cube is made from. Rows in which any channel is left
/// out are left out as a whole, since all channels of Visibilities have the same samples. Of several windows the channels must
/// agree to a hundredth of their width.
/// @throws DataError when they do not, when windows have different frames, or when no row is left
CollectedVisibilities collect_cube(VisibilityReader& reader, SampleOrigins origins = SampleOrigins::leave,
                                   const ArrayRoom& room = {});

}  // namespace mpol::io
