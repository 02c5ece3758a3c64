#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/Config.hpp>

#include <mpol_cpp/cli/settings/setting.h>

namespace mpol::cli {

/// The file that `--config` names in the arguments of a verb (the last one wins), empty when none does.
std::filesystem::path config_in(const std::vector<std::string>& arguments);

/// The settings of a TOML file with their lines: its top level, then the table of the verb; of crossval that of image before its
/// own. Names are the verb's long options; relative paths in the file become relative to its folder. Tables of other verbs, and
/// `record`, which mpol writes for people and for later checks, are passed over.
/// @throws FileError when the file cannot be read or is not TOML; UsageError for a name that is no option of the verb
std::vector<Setting> config_settings(const std::filesystem::path& file, const CLI::App& verb);

/// The same from the text of such a file. @param named  how messages call it, and the file that paths are relative to
std::vector<Setting> config_settings_of(const std::string& text, const std::filesystem::path& named, const CLI::App& verb);

/// What a run.toml says about the run that wrote it (its table `record`).
struct RecordedRun {
  std::string data_sha256;
  std::vector<std::string> fingerprint;  ///< "name = value" of everything that altered the result
  std::int64_t epochs_asked = 0, epochs_done = 0;
  std::string stop_reason;
  std::vector<std::string> files;  ///< that the run wrote, within OUT
};

/// Empty when the file has no such table. @throws FileError when it cannot be read or is not TOML
std::optional<RecordedRun> recorded_run(const std::filesystem::path& file);

/// The version of toml++, which reads these files.
std::string toml_version();

}  // namespace mpol::cli
