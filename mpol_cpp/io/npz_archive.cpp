#include <mpol_cpp/io/npz_archive.h>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/archives/array_archive.h>
#include <mpol_cpp/io/archives/folder_archive.h>
#include <mpol_cpp/io/archives/zip_archive.h>
#include <mpol_cpp/io/npy_text.h>

namespace mpol::io {
namespace {

constexpr std::int64_t block_bytes = 1 << 20;

template <typename Word>
void swap_words(void* values, std::int64_t count) {
  auto* words = static_cast<Word*>(values);
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (sizeof(Word) == 2) words[i] = __builtin_bswap16(words[i]);
    if constexpr (sizeof(Word) == 4) words[i] = __builtin_bswap32(words[i]);
    if constexpr (sizeof(Word) == 8) words[i] = __builtin_bswap64(words[i]);
  }
}

void swap_bytes(void* values, std::int64_t bytes, std::int64_t word) {
  if (word == 2) swap_words<std::uint16_t>(values, bytes / 2);
  if (word == 4) swap_words<std::uint32_t>(values, bytes / 4);
  if (word == 8) swap_words<std::uint64_t>(values, bytes / 8);
}

}  // namespace

/// The values of one array in the order of the file and the byte order of this machine.
class ValueStream {
 public:
  ValueStream(std::unique_ptr<ArchiveMember> member, NpyHeader header) : member_(std::move(member)), header_(std::move(header)) {
    member_->skip(header_.header_bytes);
  }

  const NpyHeader& header() const { return header_; }
  void finish() { member_->finish(); }
  void skip(std::int64_t count) { member_->skip(count * header_.item_bytes); }

  /// The next `count` values as they are stored, into memory.
  void read(void* destination, std::int64_t count) {
    const auto bytes = count * header_.item_bytes;
    auto* to = static_cast<char*>(destination);
    for (std::int64_t done = 0; done < bytes; done += block_bytes) {
      const auto step = std::min(block_bytes, bytes - done);
      member_->read(to + done, step);
      if (header_.byte_swapped) swap_bytes(to + done, step, header_.kind == 'c' ? header_.item_bytes / 2 : header_.item_bytes);
    }
    if (header_.kind == 'b') check_bools(to, count);
  }

  /// The next values as a tensor of stored dtype and given shape.
  Tensor block(const std::vector<std::int64_t>& shape) {
    auto values = at::empty(shape, header_.stored_dtype());
    read(values.data_ptr(), values.numel());
    if (header_.kind == 'u' && header_.item_bytes == 8) check_fits_int64(values);
    return values;
  }

  std::int64_t values_per_block() const { return block_bytes / header_.item_bytes; }

 private:
  /// Any byte but 0 and 1 in a C++ bool is undefined behaviour; numpy takes every other byte for true.
  static void check_bools(char* values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<char>(values[i] != 0);
  }
  void check_fits_int64(const Tensor& values) const {
    const auto* v = values.const_data_ptr<std::int64_t>();
    const auto* negative = std::find_if(v, v + values.numel(), [](std::int64_t value) { return value < 0; });
    if (negative == v + values.numel()) return;
    throw DataError(fmt::format("{}: holds {}; unsigned integers up to {} can be read: convert it to float64", member_->where(),
                                static_cast<std::uint64_t>(*negative), INT64_MAX));
  }

  std::unique_ptr<ArchiveMember> member_;
  NpyHeader header_;
};

namespace {

/// Reads the next view.numel() values into a view of any strides, blockwise.
void read_values(ValueStream& in, Tensor view) {
  const auto& header = in.header();
  if (view.numel() == 0) return;
  const bool unchanged = header.stored_dtype() == view.scalar_type() && !(header.kind == 'u' && header.item_bytes == 8);
  if (unchanged && view.is_contiguous()) return in.read(view.data_ptr(), view.numel());
  if (view.numel() <= in.values_per_block()) {
    view.copy_(in.block(view.sizes().vec()));
    return;
  }
  const auto rows = view.size(0);
  const auto rows_per_block = in.values_per_block() / (view.numel() / rows);
  if (rows_per_block == 0) {
    for (std::int64_t row = 0; row < rows; ++row) read_values(in, view.select(0, row));
    return;
  }
  for (std::int64_t begin = 0; begin < rows; begin += rows_per_block) {
    read_values(in, view.narrow(0, begin, std::min(rows_per_block, rows - begin)));
  }
}

/// Rows of an array in C order: the others are skipped.
void read_rows(ValueStream& in, const std::vector<std::int64_t>& rows, const Tensor& view) {
  const auto all_rows = in.header().shape[0];
  const auto row_values = all_rows == 0 ? 0 : in.header().count() / all_rows;
  for (std::int64_t row = 0; row < all_rows; ++row) {
    std::optional<std::int64_t> first;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != row) continue;
      const auto place = static_cast<std::int64_t>(i);
      if (first) {
        view.select(0, place).copy_(view.select(0, *first));
      } else {
        read_values(in, view.select(0, place));
        first = place;
      }
    }
    if (!first) in.skip(row_values);
  }
}

/// Rows of a (rows, samples) array in Fortran order, where they lie interleaved.
void read_interleaved_rows(ValueStream& in, const std::vector<std::int64_t>& rows, const Tensor& view) {
  const auto index = at::tensor(rows, torch::kInt64);
  const auto all_rows = in.header().shape[0];
  const auto samples = view.size(1);
  const auto step = std::max<std::int64_t>(1, in.values_per_block() / std::max<std::int64_t>(all_rows, 1));
  for (std::int64_t begin = 0; begin < samples; begin += step) {
    const auto count = std::min(step, samples - begin);
    view.narrow(1, begin, count).copy_(in.block({count, all_rows}).index_select(1, index).t());
  }
}

/// The view with its indices in the order in which a file of Fortran order runs through them.
Tensor reversed_axes(const Tensor& view) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(view.dim()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = view.dim() - 1 - static_cast<std::int64_t>(i);
  return view.permute(order);
}

std::unique_ptr<ArrayArchive> open_archive_of(const std::filesystem::path& path, Checksums checksums) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::make_unique<FolderArchive>(path);
  return std::make_unique<ZipArchive>(path, checksums);
}

Tensor allocate(const NpyHeader& header, std::string_view where) {
  try {
    return at::empty(header.shape, header.dtype());
  } catch (const std::exception&) {
    throw FileError(fmt::format("{}: shape {} needs {:.1f} GiB, more than this machine gives; read fewer channels or samples",
                                where, shape_text(header.shape), static_cast<double>(header.data_bytes()) / 0x1p30));
  }
}

}  // namespace

struct ArrayStream::Impl {
  ValueStream values;
};

ArrayStream::ArrayStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArrayStream::~ArrayStream() = default;
ArrayStream::ArrayStream(ArrayStream&&) noexcept = default;
ArrayStream& ArrayStream::operator=(ArrayStream&&) noexcept = default;

const NpyHeader& ArrayStream::header() const { return impl_->values.header(); }
Tensor ArrayStream::next(std::int64_t count) { return impl_->values.block({count}).to(header().dtype()); }
void ArrayStream::skip(std::int64_t count) { impl_->values.skip(count); }
void ArrayStream::finish() { impl_->values.finish(); }

struct NpzReader::Impl {
  Impl(const std::filesystem::path& path, Checksums checksums) : archive(open_archive_of(path, checksums)) {
    for (const auto& entry : archive->entries()) {
      constexpr std::string_view suffix = ".npy";
      if (!entry.name.ends_with(suffix)) continue;
      const auto key = entry.name.substr(0, entry.name.size() - suffix.size());
      if (entry_of.emplace(key, entry).second) keys.push_back(key);
    }
    if (keys.empty()) {
      throw FileError(fmt::format("{}: a zip archive without numpy arrays ({} entries); write it with numpy.savez", path.string(),
                                  archive->entries().size()));
    }
  }

  const ArchiveEntry& entry(const std::string& key) const {
    const auto found = entry_of.find(key);
    if (found != entry_of.end()) return found->second;
    throw FileError(fmt::format("{}: no array '{}'; it holds {}: add it or rename one", archive->path().string(), key,
                                fmt::join(keys, ", ")));
  }

  /// Before memory is asked for: an array of more than ten times its file is unpacked once, piece by piece, to see whether it is
  /// there. Few are: their values repeat.
  void check_promise(const std::string& key, const std::string& where) {
    constexpr std::int64_t believed = 10;
    if (entry(key).bytes <= believed * archive->file_bytes() || kept_promises.contains(key)) return;
    const auto member = archive->open(entry(key), where);
    member->skip(entry(key).bytes);
    member->finish();
    kept_promises.insert(key);
  }

  std::unique_ptr<ArrayArchive> archive;
  std::map<std::string, ArchiveEntry> entry_of;
  std::vector<std::string> keys;
  std::set<std::string> kept_promises;
};

NpzReader::NpzReader(const std::filesystem::path& path, Checksums checksums) : impl_(std::make_unique<Impl>(path, checksums)) {}
NpzReader::~NpzReader() = default;
NpzReader::NpzReader(NpzReader&&) noexcept = default;
NpzReader& NpzReader::operator=(NpzReader&&) noexcept = default;

const std::filesystem::path& NpzReader::path() const { return impl_->archive->path(); }
const std::vector<std::string>& NpzReader::keys() const { return impl_->keys; }
bool NpzReader::contains(const std::string& key) const { return impl_->entry_of.contains(key); }
std::string NpzReader::where(const std::string& key) const { return fmt::format("{}: array '{}'", path().string(), key); }

NpyHeader NpzReader::header(const std::string& key) const {
  const auto& entry = impl_->entry(key);
  const auto place = where(key);
  auto member = impl_->archive->open(entry, place);
  std::string bytes(static_cast<std::size_t>(std::min(npy_preamble_bytes, entry.bytes)), '\0');
  member->read(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  const auto length = static_cast<std::size_t>(npy_header_bytes(bytes, entry.bytes, place));
  const auto begun = std::min(bytes.size(), length);
  bytes.resize(length);
  member->read(bytes.data() + begun, static_cast<std::int64_t>(length - begun));
  auto header = parse_npy_header(bytes, place);
  if (header.data_bytes() != entry.bytes - header.header_bytes) {  // not their sum: the size may be the largest there is
    throw FileError(fmt::format("{}: shape {} of '{}' needs {} bytes, but {} are there; the file is damaged: write it again",
                                place, shape_text(header.shape), header.descr, header.data_bytes(),
                                entry.bytes - header.header_bytes));
  }
  impl_->check_promise(key, place);
  return header;
}

Tensor NpzReader::read(const std::string& key) const {
  const auto described = header(key);
  if (described.is_text()) {
    throw DataError(
        fmt::format("{} is text ('{}'); numbers are needed: convert it with numpy.astype", where(key), described.descr));
  }
  auto array = allocate(described, where(key));
  read_into(key, array);
  return array;
}

void NpzReader::read_into(const std::string& key, Tensor destination) const {
  auto in = ValueStream(impl_->archive->open(impl_->entry(key), where(key)), header(key));
  if (destination.sizes() != at::IntArrayRef(in.header().shape)) {
    throw ShapeError(fmt::format("{} has shape {}; a view of that shape is needed", where(key), shape_text(in.header().shape)));
  }
  read_values(in, in.header().fortran_order ? reversed_axes(destination) : destination);
  in.finish();
}

void NpzReader::read_rows_into(const std::string& key, const std::vector<std::int64_t>& rows, Tensor destination) const {
  auto in = ValueStream(impl_->archive->open(impl_->entry(key), where(key)), header(key));
  auto expected = in.header().shape;
  if (expected.size() != 2) {
    throw ShapeError(fmt::format("{} has shape {}; rows are read from (rows, samples)", where(key), shape_text(expected)));
  }
  for (const auto row : rows) {
    if (row < 0 || row >= expected[0]) {
      throw ValueError(fmt::format("{} has rows 0 to {}; row {} is not there", where(key), expected[0] - 1, row));
    }
  }
  expected[0] = static_cast<std::int64_t>(rows.size());
  if (destination.sizes() != at::IntArrayRef(expected)) {
    throw ShapeError(
        fmt::format("the selected rows of {} have shape {}; a view of that shape is needed", where(key), shape_text(expected)));
  }
  if (in.header().fortran_order) {
    read_interleaved_rows(in, rows, destination);
  } else {
    read_rows(in, rows, destination);
  }
  in.finish();
}

ArrayStream NpzReader::stream(const std::string& key) const {
  return ArrayStream(std::make_unique<ArrayStream::Impl>(
      ArrayStream::Impl{ValueStream(impl_->archive->open(impl_->entry(key), where(key)), header(key))}));
}

std::string NpzReader::read_text(const std::string& key) const {
  const auto described = header(key);
  constexpr std::int64_t longest_text = 4096;
  if (!described.is_text() || described.count() != 1 || described.item_bytes > longest_text) {
    throw DataError(fmt::format("{} has dtype '{}' and shape {}; one text of at most {} bytes is needed", where(key),
                                described.descr, shape_text(described.shape), longest_text));
  }
  auto member = impl_->archive->open(impl_->entry(key), where(key));
  member->skip(described.header_bytes);
  std::string bytes(static_cast<std::size_t>(described.item_bytes), '\0');
  member->read(bytes.data(), described.item_bytes);
  member->finish();
  return described.kind == 'U' ? utf8_of_numpy(bytes, described.byte_swapped) : bytes.substr(0, bytes.find('\0'));
}

std::map<std::string, Tensor> read_npz_arrays(const std::filesystem::path& path) {
  const NpzReader reader(path);
  std::map<std::string, Tensor> arrays;
  for (const auto& key : reader.keys()) arrays.emplace(key, reader.read(key));
  return arrays;
}

Tensor read_npz_array(const std::filesystem::path& path, const std::string& key) { return NpzReader(path).read(key); }

}  // namespace mpol::io
