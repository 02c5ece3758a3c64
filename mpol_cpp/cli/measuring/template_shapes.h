#pragma once

#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/analysis/matching/polar_shapes.h>

namespace mpol::cli {

/// One template that --generate names.
struct GeneratedTemplate {
  std::string name;   ///< "ring:0.5:0.1", each range replaced by its value
  torch::Tensor map;  ///< (nr, nphi) float64
};

/// Templates of a list such as "ring:0.2..0.8..7:0.1,spiral:0.5:0.05:20:2": shapes with their numbers (arcsec, degrees), each of
/// which may be FIRST..LAST..COUNT, even values; all combinations, the last number running fastest.
/// @throws UsageError naming the shape that cannot be, or more templates than are sensible
std::vector<GeneratedTemplate> generated_templates(const std::string& list, const PolarBins& bins);

}  // namespace mpol::cli
