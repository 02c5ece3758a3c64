#pragma once

#include <filesystem>
#include <string>

#include <mpol_cpp/serialize/mapped_array.h>

namespace mpol::io {

/// The array of a .npy file, read where it is asked for: for data larger than memory.
/// @throws FileError  missing, truncated or foreign file
/// @throws DataError  arrays that cannot be mapped: of objects or text, of the other byte order, in Fortran order, or of
///                    unsigned integers that would have to be widened; the message says how to write them
MappedArray map_npy(const std::filesystem::path& path);

/// The same for an array of a .npz file that is stored, not deflated (numpy.savez, not savez_compressed). The checksum of
/// the archive is not verified, which would mean to read everything.
MappedArray map_npz_member(const std::filesystem::path& path, const std::string& key);

}  // namespace mpol::io
