#include <mpol_cpp/fourier/kernel_storage.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/host/host_memory.h>

namespace mpol {
namespace {

[[noreturn]] void refuse_folder(const std::filesystem::path& folder, std::size_t bytes, int reason) {
  throw FileError(fmt::format("{} cannot hold {} of kernels: {}; choose another folder, or fewer pixels or channels",
                              folder.string(), memory_words(static_cast<double>(bytes)), std::strerror(reason)));
}

/// A file without a name, all of whose room is taken: writing to it cannot fail later.
class UnnamedFile {
 public:
  UnnamedFile(const std::filesystem::path& folder, std::size_t bytes) {
    auto name = (folder / "mpol-kernels-XXXXXX").string();
    descriptor_ = mkstemp(name.data());
    if (descriptor_ < 0) refuse_folder(folder, bytes, errno);
    unlink(name.c_str());
    if (const int reason = posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes)); reason != 0) {
      close(descriptor_);
      refuse_folder(folder, bytes, reason);
    }
  }
  ~UnnamedFile() { close(descriptor_); }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

Tensor KernelStorage::zeros(at::IntArrayRef shape, torch::Dtype dtype) const {
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(shape)) * c10::elementSize(dtype);
  if (folder.empty() || bytes == 0) return at::zeros(shape, dtype);
  const UnnamedFile file(folder, bytes);
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (mapped == MAP_FAILED) refuse_folder(folder, bytes, errno);
  return at::from_blob(
      mapped, shape, [bytes](void* data) { munmap(data, bytes); }, torch::TensorOptions(dtype));
}

Tensor KernelStorage::copy(const Tensor& values, torch::Dtype dtype) const { return zeros(values.sizes(), dtype).copy_(values); }

}  // namespace mpol
