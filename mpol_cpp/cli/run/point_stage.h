#pragma once

#include <vector>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/cli/output/points_table.h>
#include <mpol_cpp/cli/run/run_imager.h>

namespace mpol::cli {

/// Refuses --points beside what it cannot work with. @throws UsageError
void check_points(const ImageOptions& options);

/// What --dry-run says of them.
Choice points_choice(const ImageOptions& options);

/// --points: fits point sources and images together, says what each round came to, and, unless it was interrupted, takes the
/// sources out of the visibilities, from which all that follows is made.
/// @throws UsageError for a place outside of the field
FittedPoints fit_points_of(const DataStage& stage, Visibilities& visibilities);

}  // namespace mpol::cli
