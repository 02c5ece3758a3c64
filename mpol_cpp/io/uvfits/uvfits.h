#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <mpol_cpp/io/measurement_set/channel_choice.h>
#include <mpol_cpp/io/measurement_set/hands.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/io/readers/row_tracks.h>
#include <mpol_cpp/io/readers/visibility_reader.h>

namespace mpol::io {

/// Which part of a UVFITS file is wanted, and how it is to be understood.
struct UvfitsOptions {
  PolarizationChoice polarization;           ///< Stokes I from both parallel hands, unless told otherwise
  std::vector<std::int64_t> windows;         ///< numbers of IFs, from 0; empty: all
  ChannelChoice channels;                    ///< of each window
  SetPhases phases = SetPhases::conjugated;  ///< signs of the file
  RowTracks tracks = RowTracks::leave;       ///< say what averaging in time needs: DATE, antennas, source
};

/// True for a FITS file whose primary unit holds random groups, by its header.
bool is_uvfits(const std::filesystem::path& path);

/// Opens a UVFITS file (random groups, AIPS Memo 117) for reading. Each IF is a window, of each frequency setup (FREQSEL) where
/// there are several; blocks of the windows alternate, channels go by rising frequency.
///
/// u, v are the parameters UU… and VV… in seconds (UU-L… in wavelengths at the reference frequency), scaled by PSCAL and PZERO;
/// parameters of one name add up. Frequencies are those of the FREQ axis, moved and spaced as the table AIPS FQ says. Weights are
/// the third number of each sample. The signs are a measurement set's, unless told otherwise: conj(data) is taken.
/// Left out: negative weights (flagged), weights of 0, autocorrelations, values that are not finite.
/// @throws FileError  no UVFITS, a damaged or truncated file
/// @throws DataError  several sources; an axis, parameter or table that is needed and not there; no channel in the range
/// @throws ValueError a window or channel that is not there
std::unique_ptr<VisibilityReader> open_uvfits(const std::filesystem::path& path, const UvfitsOptions& options = {});

}  // namespace mpol::io
