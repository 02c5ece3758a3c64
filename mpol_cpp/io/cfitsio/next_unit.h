#pragma once

#include <mpol_cpp/io/cfitsio/fits_handle.h>
#include <mpol_cpp/io/cfitsio/header_check.h>

namespace mpol::io {

/// Moves to the next unit of a file, whose header is looked at before. @returns whether there is one
/// @throws FileError when it is damaged
bool next_unit(FitsHandle& file, HeaderCheck& headers);

}  // namespace mpol::io
