#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/plot/page.h>
#include <mpol_cpp/uncertainty/structure_test.h>

namespace mpol::cli {

/// What `--test-structure` gives, of each region.
struct JudgedRegion {
  std::string name, text;  ///< for people, and as the option takes it
  Tensor region;           ///< (nchan, npix, npix) bool
  JudgedStructure judged;

  StructureSummary summary() const;
};

/// The marked pixels of each region. @throws mpol::Error for those that mark nothing of the image, or all of it
std::vector<JudgedRegion> marked_regions(const ImageOptions& options, const SkyTarget& target);

/// Judges them in the fitted model, and tells it in the summary; a signal ends it as it ends a run that writes.
/// @param noise_factor  by which the noise is larger than the weights say
/// @throws UsageError where the fit is not convex
void judge_structures(std::vector<JudgedRegion>& regions, GriddedNet model, const Objective& objective, double noise_factor,
                      ImageSummary& summary);

/// A row for each: the image, the region filled, the cheapest image without the structure, and the image minus that one.
plot::Page structure_page(const std::vector<JudgedRegion>& regions, const GridCoords& coords);

}  // namespace mpol::cli
