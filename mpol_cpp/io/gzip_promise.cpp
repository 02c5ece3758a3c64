#include <mpol_cpp/io/gzip_promise.h>

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

/// Whether all of it unpacks, to the sizes and checksums that it has beside its contents.
bool unpacks(const std::filesystem::path& path) {
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  if (!file) return false;
  std::vector<char> piece(1 << 16);
  int got = 1;
  while (got > 0) got = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
  return got == 0;
}

}  // namespace

void check_gzip_promise(const std::filesystem::path& path) {
  const GzipFile file(path);
  if (file.bytes == 0 || file.expected() <= believed * file.bytes || unpacks(path)) return;
  throw FileError(
      fmt::format("{}: it promises {} bytes in {} and does not unpack to them; the file is damaged: pack it again with gzip",
                  path.string(), file.promised, file.bytes));
}

}  // namespace mpol::io
