#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/run/structure_judging.h>
#include <mpol_cpp/uncertainty/error_maps.h>
#include <mpol_cpp/visibilities/data_outline.h>

namespace mpol::cli {

/// What `mpol image` turns into files.
struct ImageResults {
  GridCoords coords;
  Tensor sky;  ///< (nchan, npix, npix), Jy/arcsec^2, sky orientation, float64 on the CPU
  DirtyProducts dirty;
  Tensor frequencies;  ///< (nchan) Hz of the image channels, or undefined
  const DataOutline& data;
  const Baselines& baselines;                 ///< some of the data's, of which the coverage is drawn
  const std::optional<Scan>& scan;            ///< the cross-validation, if there was one
  const std::optional<MappedErrors>& errors;  ///< where they were sampled
  Tensor kept_samples = {};                   ///< (samples, nchan, npix, npix), Jy/arcsec^2, or undefined
  const std::vector<JudgedRegion>& structures = {};
};

/// Stages image.fits, dirty.fits, residual.fits, maps of errors, the figures, and the table of the cross-validation.
void stage_images(OutputFolder& folder, const ImageResults& results, const TrainResult& fit, const ImageOptions& options,
                  const RunRecord& record);

/// Stages history.csv and run.toml, which lists what is staged.
/// @param more_files  what run.toml lists besides
void stage_record(OutputFolder& folder, const TrainResult& fit, const RunRecord& record, std::vector<std::string> more_files);

/// Stages history.csv, run.toml and, last, summary.json, whose times end there.
void stage_texts(OutputFolder& folder, const ImageSummary& summary, const RunRecord& record);

}  // namespace mpol::cli
