#pragma once

#include <optional>
#include <vector>

#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/report/fit_facts.h>
#include <mpol_cpp/cli/run/run_data.h>
#include <mpol_cpp/cli/run/structure_judging.h>

namespace mpol::cli {

/// What a fit of `mpol image` gave, apart from numbers.
struct FitOutcome {
  Tensor sky;                                 ///< (nchan, npix, npix) float64, on the CPU, Jy/arcsec^2
  std::optional<SampledErrors> samples = {};  ///< of all channels together
  std::optional<MappedErrors> errors = {};    ///< of channels that were sampled apart
  std::vector<JudgedRegion> structures = {};
  std::optional<DirtyProducts> dirty = {};  ///< where ranks have made them together
};

/// chi^2 of the loose visibilities: that of the fit, where its likelihood is of them, else computed.
double chi_squared_of_visibilities(const ImageOptions& options, const RunData& data, const Tensor& sky,
                                   const ImageSummary& summary);

/// The files of a run of `mpol image`, and what they say of the fit.
class RunFiles {
 public:
  /// @param before  the run that this one resumes; all must outlive this object
  RunFiles(const ImageOptions& options, const RunRecord& record, const RunData& data, const std::optional<ResumedRun>& before,
           ImageSummary& summary)
      : options_(options), record_(record), data_(data), before_(before), summary_(summary) {}

  /// Measures the fit, warns of what speaks against it, writes all files, and says the closing words.
  void write(OutputFolder& folder, const FitOutcome& outcome);
  /// The history of a fit without results. Those of an earlier run that is being replaced stay as they are.
  void keep_history(OutputFolder& folder) const;

 private:
  std::optional<MappedErrors> errors_of(const FitOutcome& outcome, const std::vector<Beam>& beams) const;
  void describe_residuals(const DirtyProducts& dirty);
  FitFacts judge(const DirtyProducts& dirty, const Tensor& sky);
  void stage_report(OutputFolder& folder, const FitFacts& facts, const std::vector<Beam>& beams) const;
  void replace_earlier(OutputFolder& folder) const;

  const ImageOptions& options_;
  const RunRecord& record_;
  const RunData& data_;
  const std::optional<ResumedRun>& before_;
  ImageSummary& summary_;
};

}  // namespace mpol::cli
