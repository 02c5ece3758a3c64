#pragma once

#include <cstdint>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// How the baselines of an observation are spread, wavelengths.
struct UvSummary {
  double max_abs_u = 0, max_abs_v = 0;  ///< largest of either coordinate
  double shortest = 0;                  ///< smallest sqrt(u^2 + v^2) > 0
  double longest = 0;                   ///< largest sqrt(u^2 + v^2)
  double short_end = 0;                 ///< 5 % of the samples lie below it (to 2 %)
  /// The shortest (to 2 %) of an array whose stations have antennas beside each other, without the baselines between these: those
  /// of up to a fifth of the samples that are ten times as short as all others. The shortest of all where there are none.
  double shortest_of_array = 0;
};

/// One pass over the baselines, block by block.
UvSummary summarize_uv(const Baselines& baselines);

/// What baselines that are not in one place add up to: a row of numbers of each part of them, (1, n) float64.
Tensor uv_row(const Baselines& baselines);
/// The rows of no baselines, (0, n) float64.
Tensor no_uv_rows();
/// What such rows say together, (parts, n). @throws ShapeError for rows that are none
UvSummary summarize_uv(const Tensor& rows);

/// Cells of a fifth of the finest fringe, 1/(5 q_max), rounded down to a number with a short name, and always below the
/// limit (1 - 1/npix)/(2 max(|u|, |v|)), arcsec. The longest baseline must have a length.
double suggested_cell_size(const UvSummary& uv);

/// The least even number of pixels with factors 2, 3 and 5 only that is not below a number.
std::int64_t transform_size(double at_least);

/// Pixels for a field of that width, arcsec: at least 64 and at most 4096, even with factors 2, 3 and 5 only.
std::int64_t pixels_for(double width, double cell_size);

}  // namespace mpol
