#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace mpol::cli {

// Files of a fit's diagnostics: their names, which of them are there, and their end.

inline constexpr const char* diagnostics_table = "diagnostics.csv";
inline constexpr const char* diagnostics_tensors = "last.safetensors";

/// The name of the figure of an epoch: epoch_NNNNNN.png
std::string diagnostics_figure(std::int64_t epoch);

/// The folder of a fit's diagnostics within OUT.
std::filesystem::path diagnostics_folder(const std::filesystem::path& out);

/// True for the names of files that mpol writes there.
bool is_diagnostics_file(const std::string& name);

/// Those that are there, as names within OUT.
std::vector<std::string> diagnostics_files(const std::filesystem::path& out);

/// Whether one of those is for TensorBoard.
bool is_of_events(const std::string& file);

/// Removes what an earlier fit left for TensorBoard.
void remove_event_files(const std::filesystem::path& out);

/// Removes what an earlier fit left of the others; files that are not mpol's stay.
void remove_diagnostics(const std::filesystem::path& out);

}  // namespace mpol::cli
