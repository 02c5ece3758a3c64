#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace mpol::ops {

/// Coordinates of successive points, wavelengths, for as long as `owner` lives.
struct NufftCoordinates {
  const double *u, *v;
  std::shared_ptr<const void> owner;
};
/// Those of points [begin, end), asked for some at a time and on several threads: so coordinates that lie narrower in memory
/// are never widened all at once.
using NufftCoordinateSource = std::function<NufftCoordinates(std::int64_t begin, std::int64_t end)>;

}  // namespace mpol::ops
