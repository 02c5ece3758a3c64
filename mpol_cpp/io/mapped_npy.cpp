#include <mpol_cpp/io/mapped_npy.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/npy.h>

namespace mpol::io {
namespace {

/// Bytes of a file by position; everything that is not there is an error.
class FileBytes {
 public:
  explicit FileBytes(const std::filesystem::path& path) : path_(path), file_(path, std::ios::binary) {
    file_.seekg(0, std::ios::end);
    size_ = file_ ? static_cast<std::int64_t>(file_.tellg()) : -1;
    if (size_ < 0) fail("no such file, or not readable");
  }

  std::int64_t size() const { return size_; }
  std::string read(std::int64_t begin, std::int64_t count) {
    if (begin < 0 || count < 0 || begin > size_ || count > size_ - begin) fail("it is truncated or damaged");
    std::string bytes(static_cast<std::size_t>(count), '\0');
    file_.seekg(begin);
    if (!file_.read(bytes.data(), count)) fail("it cannot be read");
    return bytes;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(fmt::format("cannot read {}: {}", path_.string(), what));
  }

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::int64_t size_;
};

/// A number of `count` bytes, the least significant one first, as zip archives have them.
std::uint64_t zip_number(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < count; ++i)
    number |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes.at(at + i))) << (8 * i);
  return number;
}

std::int64_t zip_position(const FileBytes& file, std::uint64_t number) {
  if (number > static_cast<std::uint64_t>(file.size())) file.fail("its directory points behind its end");
  return static_cast<std::int64_t>(number);
}

constexpr std::uint64_t in_zip64 = 0xffffffff;

/// The archive's directory: all its entries' headers (APPNOTE.TXT 4.3.12).
std::string zip_directory(FileBytes& file) {
  constexpr std::int64_t end_bytes = 22, longest_comment = 65535, locator_bytes = 20, end64_bytes = 56;
  const auto tail_begin = std::max<std::int64_t>(0, file.size() - end_bytes - longest_comment);
  const auto tail = file.read(tail_begin, file.size() - tail_begin);
  const auto found = tail.rfind("PK\5\6");
  if (found == std::string::npos || tail.size() - found < end_bytes) file.fail("it is no zip archive");
  auto size = zip_number(tail, found + 12, 4), begin = zip_number(tail, found + 16, 4);
  const auto end_at = tail_begin + static_cast<std::int64_t>(found);
  if ((size == in_zip64 || begin == in_zip64) && end_at >= locator_bytes) {
    const auto locator = file.read(end_at - locator_bytes, locator_bytes);
    if (!locator.starts_with("PK\6\7")) file.fail("its directory is damaged");
    const auto end64 = file.read(zip_position(file, zip_number(locator, 8, 8)), end64_bytes);
    if (!end64.starts_with("PK\6\6")) file.fail("its directory is damaged");
    size = zip_number(end64, 40, 8);
    begin = zip_number(end64, 48, 8);
  }
  return file.read(zip_position(file, begin), zip_position(file, size));
}

struct ZipMemberPlace {
  std::int64_t header = 0, bytes = 0;
  bool stored = false;
};

/// Sizes and position that do not fit into 32 bits stand in an extra field, those that are needed in this order.
void read_zip64_field(std::string_view extra, std::uint64_t& size, std::uint64_t& packed, std::uint64_t& header) {
  while (extra.size() >= 4) {
    const auto id = zip_number(extra, 0, 2), count = zip_number(extra, 2, 2);
    auto field = extra.substr(4, count);
    if (id == 1) {
      for (auto* number : {&size, &packed, &header}) {
        if (*number != in_zip64 || field.size() < 8) continue;
        *number = zip_number(field, 0, 8);
        field.remove_prefix(8);
      }
      return;
    }
    extra.remove_prefix(std::min<std::size_t>(extra.size(), 4 + count));
  }
}

std::optional<ZipMemberPlace> find_zip_member(FileBytes& file, const std::string& name) {
  constexpr std::size_t entry_bytes = 46;
  const auto directory = zip_directory(file);
  std::string_view rest(directory);
  while (rest.size() >= entry_bytes && rest.starts_with("PK\1\2")) {
    const auto name_bytes = zip_number(rest, 28, 2), extra_bytes = zip_number(rest, 30, 2),
               comment_bytes = zip_number(rest, 32, 2);
    if (rest.size() < entry_bytes + name_bytes + extra_bytes + comment_bytes) file.fail("its directory is damaged");
    if (rest.substr(entry_bytes, name_bytes) == name) {
      auto packed = zip_number(rest, 20, 4), size = zip_number(rest, 24, 4), header = zip_number(rest, 42, 4);
      read_zip64_field(rest.substr(entry_bytes + name_bytes, extra_bytes), size, packed, header);
      const bool plain = (zip_number(rest, 8, 2) & 1) == 0 && zip_number(rest, 10, 2) == 0 && size == packed;
      return ZipMemberPlace{zip_position(file, header), zip_position(file, size), plain};
    }
    rest.remove_prefix(entry_bytes + name_bytes + extra_bytes + comment_bytes);
  }
  return std::nullopt;
}

/// Maps the .npy that fills [begin, begin + bytes) of a file.
MappedArray map_npy_at(const std::filesystem::path& path, FileBytes& file, std::int64_t begin, std::int64_t bytes,
                       const std::string& where) {
  const auto preamble = file.read(begin, std::min(bytes, npy_preamble_bytes));
  const auto header_bytes = npy_header_bytes(preamble, bytes, where);
  const auto header = parse_npy_header(file.read(begin, header_bytes), where);
  if (header.is_text() || header.byte_swapped || header.fortran_order || header.dtype() != header.stored_dtype()) {
    throw DataError(
        fmt::format("{}: an array of {}{} cannot be read from disk piece by piece: write it with "
                    "numpy.ascontiguousarray, of float or complex numbers in this machine's byte order",
                    where, header.descr, header.fortran_order ? " in Fortran order" : ""));
  }
  if (header.data_bytes() > bytes - header_bytes) throw FileError(where + ": it is truncated");
  return MappedArray({.path = path, .begin = begin + header_bytes, .shape = header.shape, .dtype = header.dtype()});
}

}  // namespace

MappedArray map_npy(const std::filesystem::path& path) {
  FileBytes file(path);
  return map_npy_at(path, file, 0, file.size(), path.string());
}

MappedArray map_npz_member(const std::filesystem::path& path, const std::string& key) {
  FileBytes file(path);
  const auto where = fmt::format("{}: array '{}'", path.string(), key);
  const auto place = find_zip_member(file, key + ".npy");
  if (!place) throw FileError(where + " is missing");
  if (!place->stored) {
    throw FileError(where + " is compressed and cannot be read from disk piece by piece: write the file with numpy.savez");
  }
  constexpr std::int64_t local_bytes = 30;
  const auto local = file.read(place->header, local_bytes);
  if (!local.starts_with("PK\3\4")) file.fail("it is damaged");
  const auto begin = place->header + local_bytes + static_cast<std::int64_t>(zip_number(local, 26, 2) + zip_number(local, 28, 2));
  if (begin > file.size() - place->bytes) file.fail("it is truncated or damaged");
  return map_npy_at(path, file, begin, place->bytes, where);
}

}  // namespace mpol::io
