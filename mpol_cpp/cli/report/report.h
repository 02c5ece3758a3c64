#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/report/fit_facts.h>
#include <mpol_cpp/images/beam.h>
#include <mpol_cpp/visibilities/data_outline.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol::cli {

/// What report.html tells of a run of `mpol image`.
struct ReportContent {
  const ImageSummary& summary;
  const FitFacts& facts;
  const DataOutline& data;
  const UvSummary& uv;                ///< of all baselines
  std::string name;                   ///< of the data: the file's
  std::string uv_unit;                ///< in which its u and v were read
  std::vector<Beam> beams;            ///< of dirty and residual images; none when a beam is no ellipse
  std::string command;                ///< the call of the program
  std::vector<std::string> settings;  ///< "name = value" of all
  std::vector<std::string> warnings;
  std::vector<std::string> readings;  ///< what was read and left out of each file, JSON, as in summary.json
  std::filesystem::path folder;       ///< in which summary.png, report.png, errors.png and scan.png are, where they were drawn
};

/// One self-contained page: no network, no scripts. Where pictures are missing it says so.
std::string report_html(const ReportContent& content);

}  // namespace mpol::cli
