#include <algorithm>
#include <memory>

#include <ATen/ops/empty.h>
#include <zip.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/npy_text.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::io {
namespace {

/// The zip of a library call that failed, in words.
[[noreturn]] void fail(const std::filesystem::path& path, zip_error_t* error) {
  const bool system = zip_error_system_type(error) == ZIP_ET_SYS && zip_error_code_system(error) != 0;
  if (system) throw FileError(cannot_write(path, zip_error_code_system(error)));
  throw FileError(fmt::format("cannot write {}: {}; write elsewhere", path.string(), zip_error_strerror(error)));
}

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using OpenZip = std::unique_ptr<zip_t, Discard>;

OpenZip create(const AtomicFile& file) {
  int code = 0;
  OpenZip archive(zip_open(file.temporary_path().c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  fail(file.path(), &error);
}

/// Adds header and values, without copying them, as one entry; they must live until the archive is closed.
void add_entry(zip_t* archive, const std::filesystem::path& path, const std::string& name, const std::string& header,
               const Tensor& values, Compression compression) {
  zip_error_t error;
  zip_error_init(&error);
  // libzip keeps a copy of this list; its bytes are only read.
  zip_buffer_fragment_t fragments[2] = {{reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data())), header.size()},
                                        {static_cast<zip_uint8_t*>(const_cast<void*>(values.const_data_ptr())), values.nbytes()}};
  zip_source_t* source = zip_source_buffer_fragment_create(fragments, values.nbytes() > 0 ? 2 : 1, 0, &error);
  if (source == nullptr) fail(path, &error);
  const auto index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    fail(path, zip_get_error(archive));
  }
  const auto entry = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t first_dos_day = (0 << 9) | (1 << 5) | 1;  // 1980-01-01: the same arrays give the same bytes
  const auto method = compression == Compression::deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
  if (zip_file_set_dostime(archive, entry, 0, first_dos_day, 0) != 0 ||
      zip_set_file_compression(archive, entry, method, 0) != 0) {
    fail(path, zip_get_error(archive));
  }
}

}  // namespace

void NpzWriter::add(const std::string& key, const Tensor& array) {
  auto values = array.detach().to(torch::kCPU).resolve_conj().resolve_neg().contiguous();
  entries_.push_back({key + ".npy", npy_header(npy_descr(values.scalar_type()), values.sizes().vec()), values});
}

void NpzWriter::add_text(const std::string& key, const std::string& text) {
  const auto element = numpy_of_utf8(text.empty() ? std::string(1, '\0') : text);
  auto values = at::empty({static_cast<std::int64_t>(element.size())}, torch::kUInt8);
  std::copy(element.begin(), element.end(), static_cast<char*>(values.data_ptr()));
  const auto order = npy_descr(torch::kInt32).front();
  entries_.push_back({key + ".npy", npy_header(fmt::format("{}U{}", order, element.size() / 4), {}), values});
}

void NpzWriter::write(const std::filesystem::path& path, Compression compression) const {
  AtomicFile file(path);
  auto archive = create(file);
  for (const auto& entry : entries_) add_entry(archive.get(), path, entry.name, entry.header, entry.values, compression);
  if (zip_close(archive.get()) != 0) fail(path, zip_get_error(archive.get()));
  static_cast<void>(archive.release());  // closed
  file.commit();
}

void write_npz_arrays(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays, Compression compression) {
  NpzWriter writer;
  for (const auto& [key, array] : arrays) writer.add(key, array);
  writer.write(path, compression);
}

}  // namespace mpol::io
