#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <mpol_cpp/serialize/event_file.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::cli {

/// Writes files of events for TensorBoard into OUT/diagnostics while a fit goes on: `loss/total`, `loss/nll`, `loss/TERM`,
/// learning rate and, of each channel, flux (Jy). A resumed fit adds a file, whose beginning takes the place of what an
/// interrupted one said of the same epochs. A file that cannot be written is a warning, and no more of it is said.
class FitEvents {
 public:
  static constexpr std::int64_t interval = 10;  ///< epochs

  explicit FitEvents(std::filesystem::path out) : out_(std::move(out)) {}

  Callback callback();

 private:
  void write(const Progress& progress, std::int64_t done);

  std::filesystem::path out_;
  std::optional<EventFile> file_;
  bool failed_ = false;
};

}  // namespace mpol::cli
