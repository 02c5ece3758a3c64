#pragma once

#include <cstdint>
#include <vector>

namespace mpol {

/// Bin edges of equal width near `start` and of equal ratio further out: the first `linear` edges are equally spaced,
/// the `logarithmic` ones after them grow by the factor linear/(linear - 1) each, so that the last bin of equal width is
/// also the first of equal ratio. There are linear + logarithmic - 1 bins; the last edge is `end`.
///
/// The edges of MPoL's loglinspace for start = 0; for another start those of end - start, shifted (MPoL's have a jump
/// there).
/// @throws ValueError unless start < end, both finite, logarithmic >= 1, linear >= 2
std::vector<double> loglinspace(double start, double end, std::int64_t logarithmic, std::int64_t linear = 3);

}  // namespace mpol
