#pragma once

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/output/blocks_table.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/cli/run/run_imager.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// Refuses --fit-blocks beside what it cannot work with. @throws UsageError
void check_fit_blocks(const ImageOptions& options);

/// The blocks that --fit-blocks fits, of data that were read.
/// @throws DataError where there are fewer than two; UsageError for kinds of blocks that have no gains
SampleBlocks blocks_to_fit(const ImageOptions& options);
/// What --dry-run says of them.
Choice blocks_choice(const ImageOptions& options);

/// --fit-blocks: fits gains and images by turns, says what each round came to, and, unless it was interrupted, replaces the
/// visibilities by calibrated ones, from which all that follows is made. Regularizers whose weight is yet to be searched have 1
/// U.
CalibratedBlocks calibrate(const DataStage& stage, Visibilities& visibilities);

/// Compares the gains with those that the final image asks for (change_at_end), and warns of what is doubtful about them.
/// @param data  calibrated  @param sky  (nchan, npix, npix) float64, Jy/arcsec^2
void judge_blocks(CalibratedBlocks& blocks, const FitData& data, const Tensor& sky);

}  // namespace mpol::cli
