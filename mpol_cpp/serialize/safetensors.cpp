#include <mpol_cpp/serialize/safetensors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/serialize/safetensors_header.h>
#include <mpol_cpp/serialize/sha256.h>

namespace mpol {
namespace {

using detail::SafetensorsEntry;
using detail::SafetensorsHeader;

/// The tensor as its bytes go to the file: on the host, contiguous, complex numbers as pairs. No copy when it is so.
Tensor stored_form(const Tensor& tensor) {
  const auto host = tensor.detach().to(torch::kCPU).resolve_conj().resolve_neg().contiguous();
  return host.is_complex() ? at::view_as_real(host) : host;
}

torch::Dtype stored_dtype(const Tensor& tensor) {
  return tensor.is_complex() ? c10::toRealValueType(tensor.scalar_type()) : tensor.scalar_type();
}

/// Widest dtype first, so that every tensor is aligned; by name within a dtype.
SafetensorsHeader lay_out(const NamedTensors& tensors, const Metadata& metadata) {
  SafetensorsHeader header{{}, metadata};
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) throw ValueError(fmt::format("tensor {} is undefined and cannot be stored", name));
    if (name == "__metadata__") throw ValueError("a tensor cannot be named __metadata__ in a safetensors file: rename it");
    SafetensorsEntry entry{name, stored_dtype(tensor), tensor.sizes().vec(), 0, 0};
    detail::safetensors_dtype(entry.dtype);
    if (tensor.is_complex()) {
      entry.shape.push_back(2);
      header.metadata[std::string(detail::complex_key_prefix) + name] = c10::toString(tensor.scalar_type());
    }
    header.entries.push_back(std::move(entry));
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const auto& a, const auto& b) { return c10::elementSize(a.dtype) > c10::elementSize(b.dtype); });
  std::uint64_t position = 0;
  for (auto& entry : header.entries) {
    entry.begin = position;
    position += static_cast<std::uint64_t>(tensors.at(entry.name).nbytes());
    entry.end = position;
  }
  return header;
}

/// A file that says which one it is when something is wrong with it.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) fail("there is no such file");
    if (!std::filesystem::is_regular_file(status)) fail("it is not a regular file");
    size_ = std::filesystem::file_size(path, error);
    if (error) fail(error.message());
    stream_.open(path, std::ios::binary);
    if (!stream_) fail(std::generic_category().message(errno));
  }

  std::uint64_t size() const { return size_; }

  void read(void* to, std::uint64_t bytes) {
    stream_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
    if (!stream_ || static_cast<std::uint64_t>(stream_.gcount()) != bytes) fail("it ends too early: it is truncated");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw FileError(fmt::format("cannot read {}: {}", path_.string(), what));
  }

 private:
  std::filesystem::path path_;
  std::ifstream stream_;
  std::uint64_t size_ = 0;
};

/// Length and text of the header.
std::string read_header_bytes(Reader& reader) {
  std::uint64_t length = 0;
  if (reader.size() < sizeof(length)) reader.fail("it has fewer than 8 bytes: it is empty or truncated");
  reader.read(&length, sizeof(length));
  if (length > safetensors_header_limit || length > reader.size() - sizeof(length)) {
    reader.fail(fmt::format("its header claims {} bytes in a file of {}: it is truncated, damaged or not a safetensors file",
                            length, reader.size()));
  }
  std::string bytes(sizeof(length) + length, '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  reader.read(bytes.data() + sizeof(length), length);
  return bytes;
}

/// Takes an entry out of the metadata; empty when it is not there.
std::string take(Metadata& metadata, std::string_view key) {
  const auto node = metadata.extract(std::string(key));
  return node.empty() ? std::string() : node.mapped();
}

struct CheckedHeader {
  SafetensorsHeader header;
  Metadata metadata;  ///< without the digests
  std::string payload_digest;
};

CheckedHeader read_header(Reader& reader) {
  const auto bytes = read_header_bytes(reader);
  CheckedHeader checked;
  try {
    checked.header = detail::parse_header(std::string_view(bytes).substr(8), reader.size() - bytes.size());
  } catch (const FileError& error) {
    reader.fail(error.what());
  }
  checked.metadata = checked.header.metadata;
  checked.payload_digest = take(checked.metadata, detail::payload_digest_key);
  const auto own_digest = take(checked.metadata, detail::header_digest_key);
  if (checked.payload_digest.empty() != own_digest.empty() ||
      (!own_digest.empty() && own_digest != detail::header_digest(bytes))) {
    reader.fail("its header does not match its SHA-256: it is damaged");
  }
  return checked;
}

Tensor read_tensor(Reader& reader, const SafetensorsEntry& entry, Sha256& hash) {
  const bool is_bool = entry.dtype == torch::kBool;  // read as bytes: other values than 0 and 1 may stand there
  const auto tensor = at::empty(entry.shape, is_bool ? torch::kUInt8 : entry.dtype);
  reader.read(tensor.data_ptr(), entry.end - entry.begin);
  hash.update(tensor.data_ptr(), entry.end - entry.begin);
  return is_bool ? tensor.to(torch::kBool) : tensor;
}

Tensor as_complex(const Reader& reader, const std::string& name, const Tensor& pairs, const std::string& dtype) {
  const bool fits = pairs.is_floating_point() && pairs.dim() > 0 && pairs.size(-1) == 2 &&
                    c10::toString(c10::toComplexType(pairs.scalar_type())) == dtype;
  if (!fits) reader.fail(fmt::format("tensor {} should hold pairs of {} but does not", name, dtype));
  return at::view_as_complex(pairs);
}

}  // namespace

void write_safetensors(AtomicFile& file, const NamedTensors& tensors, const Metadata& metadata) {
  const auto header = lay_out(tensors, metadata);
  Sha256 hash;
  for (const auto& entry : header.entries) {
    const auto stored = stored_form(tensors.at(entry.name));
    hash.update(stored.data_ptr(), stored.nbytes());
  }
  file.write(detail::format_header(header, hash.finish()));
  for (const auto& entry : header.entries) {
    const auto stored = stored_form(tensors.at(entry.name));
    file.write(stored.data_ptr(), stored.nbytes());
  }
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  file.commit();
}

SafetensorsFile read_safetensors(const std::filesystem::path& path, torch::Device device) {
  Reader reader(path);
  const auto [header, metadata, payload_digest] = read_header(reader);
  SafetensorsFile file{{}, metadata};
  Sha256 hash;
  for (const auto& entry : header.entries) {
    auto tensor = read_tensor(reader, entry, hash);
    const auto complex_dtype = take(file.metadata, std::string(detail::complex_key_prefix) + entry.name);
    if (!complex_dtype.empty()) tensor = as_complex(reader, entry.name, tensor, complex_dtype);
    file.tensors[entry.name] = tensor.to(device);
  }
  if (!payload_digest.empty() && payload_digest != hash.finish()) {
    reader.fail("its contents do not match their SHA-256: it is damaged");
  }
  return file;
}

Metadata read_safetensors_metadata(const std::filesystem::path& path) {
  Reader reader(path);
  return read_header(reader).metadata;
}

}  // namespace mpol
