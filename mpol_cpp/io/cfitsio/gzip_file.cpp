#include <mpol_cpp/io/cfitsio/gzip_file.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <new>
#include <vector>

#include <zlib.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

bool is_gzip(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  unsigned char magic[2] = {};
  file.read(reinterpret_cast<char*>(magic), sizeof(magic));
  return file && magic[0] == 0x1f && magic[1] == 0x8b;
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw FileError(fmt::format("{}: {}; the file is damaged: pack it again with gzip", path.string(), what));
}

/// Unpacks a file piece by piece. @throws FileError unless it is whole
void for_each_piece(const std::filesystem::path& path, const std::function<void(const char*, std::size_t)>& take) {
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  if (!file) throw FileError(fmt::format("{}: it cannot be opened; check its permissions", path.string()));
  std::vector<char> piece(1 << 16);
  for (;;) {
    const int got = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
    if (got > 0) take(piece.data(), static_cast<std::size_t>(got));
    if (got == static_cast<int>(piece.size())) continue;
    int state = Z_OK;
    const char* reason = gzerror(file.get(), &state);
    if (got < 0 || state != Z_OK) fail(path, fmt::format("gzip cannot unpack it ({})", reason));
    if (got == 0) return;
  }
}

}  // namespace

std::unique_ptr<FitsBuffer> unpack_gzip(const std::filesystem::path& path) {
  if (!is_gzip(path)) return nullptr;
  std::size_t bytes = 0;
  for_each_piece(path, [&](const char*, std::size_t count) { bytes += count; });
  if (bytes == 0) fail(path, "nothing is packed in it");
  std::unique_ptr<FitsBuffer> memory;
  try {
    memory = std::make_unique<FitsBuffer>(bytes);
  } catch (const std::bad_alloc&) {
    throw FileError(fmt::format("{}: it unpacks to {} bytes, more than this machine's memory takes", path.string(), bytes));
  }
  for_each_piece(path, [&](const char* piece, std::size_t count) {
    if (memory->bytes + count > bytes) fail(path, "it changes while it is read");
    std::copy_n(piece, count, static_cast<char*>(memory->data) + memory->bytes);
    memory->bytes += count;
  });
  memory->room = memory->bytes;
  return memory;
}

}  // namespace mpol::io
