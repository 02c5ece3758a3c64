#pragma once

#include <filesystem>
#include <vector>

#include <mpol_cpp/io/axes/fits_axes.h>
#include <mpol_cpp/io/cfitsio/header_writer.h>
#include <mpol_cpp/visibilities/stokes.h>

namespace mpol::io {

/// Writes the axis STOKES of an image, whose length is one.
void write_stokes_axis(HeaderWriter& header, Stokes stokes);

/// What an image is of, by its axis STOKES: Stokes I where it has none. A number that names nothing is warned of, and taken as I.
Stokes read_stokes_axis(const std::vector<FitsAxis>& axes, const std::filesystem::path& path);

/// Checks that an image has one plane of polarisation. @throws DataError that names those that it has
void check_one_stokes_plane(const FitsAxis& axis, const std::filesystem::path& path);

}  // namespace mpol::io
