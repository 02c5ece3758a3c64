#pragma once

#include <cstdint>

#include <torch/types.h>

#include <mpol_cpp/io/cfitsio/header_writer.h>

namespace mpol::io {

using torch::Tensor;

/// What the third axis of a cube is.
enum class SpectralAxis {
  channel,             ///< CHANNEL 0, 1, …: nothing is known
  frequency,           ///< FREQ, evenly spaced
  channel_with_table,  ///< CHANNEL, with the uneven frequencies in a binary table FREQUENCIES
};

/// Frequencies as write_… wants them: (nchan) float64 on the CPU; undefined stays so.
/// @throws ShapeError unless there is one for each channel; ValueError or DataError unless they are > 0
Tensor checked_frequencies(const Tensor& frequencies, std::int64_t nchan);

SpectralAxis spectral_axis_of(const Tensor& frequencies);
void write_spectral_axis(HeaderWriter& header, SpectralAxis kind, const Tensor& frequencies);

/// The table FREQUENCIES, as a unit of its own.
void write_frequencies(FitsHandle& file, const Tensor& frequencies);
/// Says that there is such a table.
void warn_of_uneven_frequencies();

}  // namespace mpol::io
