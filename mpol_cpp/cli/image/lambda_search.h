#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/run_record.h>
#include <mpol_cpp/crossval/cross_validator.h>
#include <mpol_cpp/distributed/device_group.h>
#include <mpol_cpp/objective/noise_unit.h>

namespace mpol::cli {

/// What a cross-validation of the command line works on.
struct LambdaSearch {
  const ImageOptions& options;
  const RunRecord& record;
  FitData data;
  const std::vector<Term>& terms;  ///< of the fit, the searched ones with the weights to begin with
  NoiseUnit noise;
  torch::Device device;
  std::filesystem::path state;          ///< the folder in which the scan is kept
  std::shared_ptr<Communicator> ranks;  ///< that share the folds; empty: this one alone
  DeviceGroup* devices = nullptr;  ///< the same of devices of this process, for folds of held-out data; `device` is no matter
};

/// Cross-validates the LAMBDAs that are "cv" or LO:HI:N. The scan tells whether it was interrupted.
Scan cross_validate(const LambdaSearch& search);

/// What folds of the other kind chose near the choice of a scan.
struct SplitCheck {
  FoldSplit split;              ///< a dartboard, or random cells where the scan's folds were a dartboard
  std::vector<double> c;        ///< that these choose, of each axis
  std::vector<double> decades;  ///< from the scan's choice, in log10
  std::int64_t points = 0;      ///< that were tried
  bool interrupted = false;     ///< nothing is known

  bool agrees() const;  ///< within half a decade in each axis
};

/// Tries the points next to a scan's choice, half a decade apart and at most two steps along each axis, by folds of the other
/// kind: a dartboard, or random cells where the scan had a dartboard.
SplitCheck check_split(const LambdaSearch& search, const Scan& scan);
/// What that came to, in words.
std::string words_of_check(const SplitCheck& check, const Scan& scan);

/// How a weight that the search found came about: "cross-validated", "by SURE" or "by GCV".
std::string words_of_choice(Score score);

/// What the diagnostics beside the score would take, and why they are no more than that; a line, or nothing.
std::string diagnostic_words(const Scan& scan);

/// What is doubtful about a choice, in words.
std::vector<std::string> scan_warnings(const Scan& scan);

/// The scan's table as text, with a line of names.
std::string scan_csv(const Scan& scan);

}  // namespace mpol::cli
