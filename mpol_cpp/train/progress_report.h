#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include <torch/arg.h>

#include <mpol_cpp/train/options/train_options.h>

namespace mpol {

/// How a fit tells people where it is.
enum class ReportStyle {
  automatic,  ///< a bar on a terminal, lines elsewhere
  bar,        ///< one line that is rewritten
  lines,      ///< a plain line every few seconds
  silent,     ///< nothing
};

/// Options of a ProgressReport.
struct ProgressReportOptions {
  using Stream = std::FILE*;  ///< of C, since a terminal is asked for its width
  /// What is shown.
  TORCH_ARG(ReportStyle, style) = ReportStyle::automatic;
  /// Where it is shown.
  TORCH_ARG(Stream, stream) = stderr;
  /// Least seconds between two plain lines; a bar is drawn ten times a second.
  TORCH_ARG(double, line_interval) = 5.0;
  /// Whether the fit is expected to end before its epochs do, by a stop criterion: then the time left is an estimate by how fast
  /// it converges (Progress::expected_end), and until there is one the time that it has taken is said.
  TORCH_ARG(bool, open_end) = false;
};

/// A callback for people: loss, steps per second and the time left, to the end or about, or taken so far.
/// Keep it for as long as the fit runs and pass `report.callback()`; finish() (or the end of its life) ends the bar's line.
class ProgressReport {
 public:
  /// Begins to count at the first epoch that it is shown.
  explicit ProgressReport(ProgressReportOptions options = {});
  ~ProgressReport();
  ProgressReport(const ProgressReport&) = delete;
  ProgressReport& operator=(const ProgressReport&) = delete;

  /// A callback for TrainOptions::callbacks; it shows the epoch it is called with, and lets the fit go on.
  Callback callback() {
    return [this](const Progress& progress) { return show(progress); };
  }
  /// Shows the last epoch if it was not shown yet, and ends the line.
  void finish();

 private:
  CallbackAction show(const Progress& progress);
  std::string text(std::int64_t width) const;
  void print();

  ProgressReportOptions options_;
  ReportStyle style_;
  // The newest epoch, and the first one seen, from which the rate follows.
  std::int64_t epoch_ = 0, epochs_ = 0, first_epoch_ = -1;
  double total_ = 0, nll_ = 0, seconds_ = 0, first_seconds_ = 0;
  double printed_seconds_ = 0;
  std::int64_t printed_epoch_ = -1;
  std::optional<std::int64_t> expected_;  // of an open end, before the last of the epochs
};

}  // namespace mpol
