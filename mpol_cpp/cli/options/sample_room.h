#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// What of memory samples may take, bytes, when they have so many channels. Empty: half of what is available.
using SampleMemory = std::function<double(std::int64_t nchan)>;

/// Where samples of so many bytes are kept: in memory, or on disk where they are more than may be taken, which is said in one
/// line. What is small stays in memory. @throws FileError when they have room in neither
ArrayRoom room_for_samples(double bytes, std::int64_t nchan, const SampleMemory& memory);

/// Room for more arrays of so many bytes beside samples: on disk when these are.
ArrayRoom room_beside(const Visibilities& visibilities, double bytes);

/// Bytes of memory that samples take: those on disk what of them is resident.
double memory_of_samples(const Visibilities& visibilities);

/// Bytes of them that are on disk.
double disk_of_samples(const Visibilities& visibilities);

}  // namespace mpol::cli
