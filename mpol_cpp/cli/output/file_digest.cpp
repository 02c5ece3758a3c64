#include <mpol_cpp/cli/output/file_digest.h>

#include <fstream>
#include <vector>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/serialize/sha256.h>

namespace mpol::cli {

std::string sha256_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) {
    const auto* why = !std::filesystem::exists(path)        ? "is not there"
                      : std::filesystem::is_directory(path) ? "is a folder, not a file"
                                                            : "cannot be read";
    throw FileError(error_text("file", path.string(), why, "check the path"));
  }
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
