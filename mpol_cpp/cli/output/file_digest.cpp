#include <mpol_cpp/cli/output/file_digest.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/io/archives/folder_archive.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/serialize/sha256.h>

namespace mpol::cli {
namespace {

/// The digest of the names and contents of all files in a folder, but that of a lock.
std::string sha256_of_folder(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() != "table.lock")
      names.push_back(entry.path().lexically_relative(folder).string());
  }
  std::sort(names.begin(), names.end());
  Sha256 digest;
  for (const auto& name : names) {
    const auto line = name + ":" + sha256_of_file(folder / name) + "\n";
    digest.update(line.data(), line.size());
  }
  return digest.finish();
}

}  // namespace

void check_readable(const std::filesystem::path& path) {
  if (io::is_measurement_set(path) || io::is_array_folder(path)) return;
  if (std::ifstream(path, std::ios::binary) && !std::filesystem::is_directory(path)) return;
  const auto* why = !std::filesystem::exists(path)        ? "is not there"
                    : std::filesystem::is_directory(path) ? "is a folder, not a file"
                                                          : "cannot be read";
  throw FileError(error_text("file", path.string(), why, "check the path"));
}

std::string sha256_of_file(const std::filesystem::path& path) {
  if (io::is_measurement_set(path) || io::is_array_folder(path)) return sha256_of_folder(path);
  check_readable(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw FileError(error_text("file", path.string(), "went away while it was being read", "put it back"));
  std::vector<char> block(1 << 20);
  Sha256 digest;
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    digest.update(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad()) throw FileError(error_text("file", path.string(), "cannot be read to its end", "check the disk"));
  return digest.finish();
}

}  // namespace mpol::cli
