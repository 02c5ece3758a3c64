#include <mpol_cpp/io/gzip_promise.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <zlib.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

constexpr std::uint64_t modulus = std::uint64_t{1} << 32;  // gzip keeps the size modulo this
constexpr std::uint64_t believed = 10;                     // times the file

/// Size of the file and, if it is one of gzip, what its last four bytes say; else 0.
struct GzipFile {
  std::uint64_t bytes = 0, promised = 0;

  explicit GzipFile(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    unsigned char magic[2] = {}, size[4] = {};
    file.read(reinterpret_cast<char*>(magic), sizeof(magic));
    if (!file || magic[0] != 0x1f || magic[1] != 0x8b) return;
    file.seekg(-static_cast<std::streamoff>(sizeof(size)), std::ios::end);
    file.read(reinterpret_cast<char*>(size), sizeof(size));
    if (!file) return;
    bytes = static_cast<std::uint64_t>(file.tellg());
    for (std::size_t i = 0; i < sizeof(size); ++i) promised |= std::uint64_t{size[i]} << (8 * i);
  }
  /// What a reader takes it for: files are expected to be smaller than what they unpack to.
  std::uint64_t expected() const { return promised < bytes ? promised + modulus : promised; }
};

/// Whether it unpacks, by its own checksums, to as much as its last four bytes say: they may be no size, but what follows the
/// packed contents.
bool unpacks(const std::filesystem::path& path, std::uint64_t promised) {
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  if (!file) return false;
  std::vector<char> piece(1 << 16);
  std::uint64_t bytes = 0;
  int got = 1;
  while (got > 0) {
    got = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
    bytes += static_cast<std::uint64_t>(std::max(got, 0));
  }
  return got == 0 && bytes >= promised;
}

}  // namespace

void check_gzip_promise(const std::filesystem::path& path) {
  const GzipFile file(path);
  if (file.bytes == 0 || file.expected() <= believed * file.bytes || unpacks(path, file.promised)) return;
  throw FileError(
      fmt::format("{}: it promises {} bytes in {} and does not unpack to them; the file is damaged: pack it again with gzip",
                  path.string(), file.promised, file.bytes));
}

}  // namespace mpol::io
