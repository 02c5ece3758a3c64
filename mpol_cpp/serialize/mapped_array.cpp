#include <mpol_cpp/serialize/mapped_array.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <ATen/ops/empty.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

[[noreturn]] void refuse_mapping(const std::filesystem::path& path, const std::string& reason) {
  throw FileError(fmt::format("cannot read {}: {}", path.string(), reason));
}

std::string system_reason() { return std::generic_category().message(errno); }

}  // namespace

/// The whole file in the address space; pages come when they are touched.
struct MappedArray::Mapping {
  explicit Mapping(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) refuse_mapping(path, system_reason());
    struct ::stat status {};
    const bool known = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    size = known ? static_cast<std::size_t>(status.st_size) : 0;
    if (size > 0) address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    const auto reason = address == MAP_FAILED ? system_reason() : std::string();
    ::close(descriptor);
    if (!known) refuse_mapping(path, "it is no regular file");
    if (!reason.empty()) refuse_mapping(path, reason);
  }
  ~Mapping() {
    if (size > 0) ::munmap(address, size);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void* address = nullptr;
  std::size_t size = 0;
};

MappedArray::MappedArray(ArrayLayout layout) : layout_(std::move(layout)) {
  if (layout_.shape.empty()) throw ValueError(layout_.path.string() + ": a scalar has no rows to be read one by one");
  mapping_ = std::make_shared<const Mapping>(layout_.path);
  const auto room = static_cast<std::int64_t>(mapping_->size) - layout_.begin;
  row_bytes_ = static_cast<std::int64_t>(c10::elementSize(layout_.dtype));
  bool fits = layout_.begin >= 0 && room >= 0;
  for (std::size_t i = 1; fits && i < layout_.shape.size(); ++i) {
    fits = layout_.shape[i] >= 0 && (layout_.shape[i] == 0 || row_bytes_ <= room / layout_.shape[i]);
    if (fits) row_bytes_ *= layout_.shape[i];
  }
  fits = fits && layout_.shape.front() >= 0 && (row_bytes_ == 0 || layout_.shape.front() <= room / row_bytes_);
  if (!fits)
    refuse_mapping(layout_.path, fmt::format("it has {} bytes, too few for an array of shape {}", mapping_->size, layout_.shape));
}

Tensor MappedArray::empty_rows(std::int64_t count) const {
  auto shape = layout_.shape;
  shape.front() = count;
  return at::empty(shape, at::TensorOptions(layout_.dtype));
}

Tensor MappedArray::read(std::int64_t begin, std::int64_t end) const {
  if (begin < 0 || begin > end || end > rows()) {
    throw ValueError(fmt::format("rows [{}, {}) of an array of {} rows: they are not there", begin, end, rows()));
  }
  auto block = empty_rows(end - begin);
  const auto* from = static_cast<const char*>(mapping_->address) + layout_.begin + begin * row_bytes_;
  const auto count = static_cast<std::size_t>((end - begin) * row_bytes_);
  if (count > 0) std::memcpy(block.mutable_data_ptr(), from, count);
  return block;
}

Tensor MappedArray::read(const Tensor& indices) const {
  if (indices.dim() != 1 || indices.scalar_type() != torch::kInt64) throw ShapeError("rows are chosen by (n) int64 numbers");
  const auto list = indices.to(torch::kCPU).contiguous();
  auto block = empty_rows(list.numel());
  const auto* number = list.const_data_ptr<std::int64_t>();
  auto* to = static_cast<char*>(block.mutable_data_ptr());
  for (std::int64_t i = 0; i < list.numel(); ++i, to += row_bytes_) {
    if (number[i] < 0 || number[i] >= rows()) {
      throw ValueError(fmt::format("row {} of an array of {} rows: it is not there", number[i], rows()));
    }
    const auto* from = static_cast<const char*>(mapping_->address) + layout_.begin + number[i] * row_bytes_;
    if (row_bytes_ > 0) std::memcpy(to, from, static_cast<std::size_t>(row_bytes_));
  }
  return block;
}

void MappedArray::release() const {
  if (mapping_->size > 0) ::madvise(mapping_->address, mapping_->size, MADV_DONTNEED);
}

}  // namespace mpol
