#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/io/measurement_set/channel_choice.h>
#include <mpol_cpp/io/measurement_set/hands.h>
#include <mpol_cpp/io/readers/row_tracks.h>
#include <mpol_cpp/io/readers/visibility_reader.h>

namespace mpol::io {

/// Whether the values of a set are turned into this library's sign convention.
enum class SetPhases {
  conjugated,  ///< conj(DATA): of sets in CASA's convention, exp(+2 pi i (u l + v m))
  as_written,  ///< of foreign sets that hold this library's convention already
};

/// Which part of a measurement set is wanted, and how it is to be understood.
struct MeasurementSetOptions {
  std::string select;                        ///< TaQL expression on the main table; empty: all rows
  std::string column;                        ///< the data; empty: CORRECTED_DATA where it is filled, else DATA
  PolarizationChoice polarization;           ///< Stokes I from both parallel hands, unless told otherwise
  std::vector<std::int64_t> windows;         ///< ids of spectral windows; empty: all that have rows
  ChannelChoice channels;                    ///< of each window
  SetPhases phases = SetPhases::conjugated;  ///< what is done with the sign of the phases
  RowTracks tracks = RowTracks::leave;       ///< read what averaging in time needs
};

/// True for a folder that holds a table of casacore, as a measurement set does.
bool is_measurement_set(const std::filesystem::path& path);

/// Whether this build reads them: whether it was made with casacore.
bool reads_measurement_sets();

/// Opens a set for reading; another program may write to it meanwhile. Windows are read one after the other, each in the order of
/// its rows, with its channels by rising frequency.
///
/// Weights are WEIGHT_SPECTRUM where its cell is defined, else WEIGHT, else 1/SIGMA^2. u, v are UVW's, in metres.
/// Left out: flagged rows and samples, autocorrelations, weights <= 0, values that are not finite.
/// @throws FileError  no set, a foreign or a damaged table, or a build without casacore
/// @throws DataError  several fields with different phase centres and no selection; no rows, windows or channels are left;
///                    hands that are not there
/// @throws ValueError an expression that is no TaQL; a column, window or channel that is not there
std::unique_ptr<VisibilityReader> open_measurement_set(const std::filesystem::path& path,
                                                       const MeasurementSetOptions& options = {});

}  // namespace mpol::io
