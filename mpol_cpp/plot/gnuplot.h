#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace mpol::plot {

/// The gnuplot on PATH, if there is one that can be executed.
std::optional<std::filesystem::path> find_gnuplot();

/// How a run of gnuplot ended.
struct GnuplotResult {
  bool succeeded = false;
  std::string message;  ///< why not: exit code, signal or timeout, and the last line that gnuplot wrote
};

/// Runs a script of a folder, in that folder, without any shell; the user's gnuplot settings are left out.
/// @param script        file name in the folder
/// @param definition    one gnuplot statement to be executed first, for example `output = 'figure.png'`
/// @param timeout       seconds after which it is killed
GnuplotResult run_gnuplot(const std::filesystem::path& gnuplot, const std::filesystem::path& folder, const std::string& script,
                          const std::string& definition, double timeout);

}  // namespace mpol::plot
