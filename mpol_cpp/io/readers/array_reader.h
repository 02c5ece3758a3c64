#pragma once

#include <filesystem>
#include <memory>

#include <mpol_cpp/io/readers/visibility_reader.h>
#include <mpol_cpp/io/visibilities_npz.h>

namespace mpol::io {

/// Opens a .npz file or a folder of .npy files, as `read_npz` describes them, for reading block by block: each selected channel
/// is a window of its own, with the channel's number as its id, since files hold channel after channel. Memory is that of a
/// block.
///
/// Samples with a weight <= 0 or with values that are not finite, which `read_npz` refuses, are left out and counted. The widths
/// of channels are unknown.
/// @throws as read_npz
std::unique_ptr<VisibilityReader> open_npz(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace mpol::io
