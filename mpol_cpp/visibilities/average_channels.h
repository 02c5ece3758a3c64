#pragma once

#include <cstdint>

#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Neighbouring channels averaged, weighted by their weights, which add up; the last ones may be fewer. Frequencies, where they
/// are known, are the means of each group's; so are u and v in wavelengths where channels have their own, weighted like the data.
/// @param channels  that become one, >= 1
/// @param room      for the averages
/// @return          ceil(nchan / channels) channels in the dtypes of the data
/// @throws ValueError
Visibilities average_channels(const Visibilities& visibilities, std::int64_t channels, const ArrayRoom& room = {});

}  // namespace mpol
