#include <mpol_cpp/serialize/array_room.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/disk_pages.h>

namespace mpol {
namespace {

constexpr const char* remedy = "set TMPDIR to a folder on a disk with more room";

[[noreturn]] void refuse(const std::filesystem::path& folder, std::size_t bytes, int code) {
  throw FileError(fmt::format("{}: no file of {:.3g} GB can be kept there for the samples: {}; {}", folder.string(),
                              static_cast<double>(bytes) / 1e9, std::generic_category().message(code), remedy));
}

/// A file of that size which has no name any more. @returns its descriptor
int nameless_file(const std::filesystem::path& folder, std::size_t bytes) {
  auto name = (folder / "mpol-samples-XXXXXX").string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) refuse(folder, bytes, errno);
  ::unlink(name.c_str());
  // All of it now: where a disk is full later, a write to memory ends the process.
  if (const int code = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)); code != 0) {
    ::close(descriptor);
    refuse(folder, bytes, code);
  }
  return descriptor;
}

/// What keeps a folder from holding so many bytes; empty: nothing.
std::string lack_of(const std::filesystem::path& folder, double bytes) {
  struct statfs disk {};
  if (::statfs(folder.c_str(), &disk) != 0) return std::generic_category().message(errno);
  if (disk.f_type == TMPFS_MAGIC || disk.f_type == RAMFS_MAGIC) return "is in memory itself";
  if (::access(folder.c_str(), W_OK) != 0) return "cannot be written";
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_bsize);
  return free < bytes ? fmt::format("has {:.3g} GB free", free / 1e9) : std::string();
}

}  // namespace

ArrayRoom ArrayRoom::on_disk(std::filesystem::path folder) {
  ArrayRoom room;
  room.folder_ = std::move(folder);
  return room;
}

Tensor ArrayRoom::empty(at::IntArrayRef shape, torch::Dtype dtype) const {
  const auto bytes = static_cast<std::size_t>(c10::multiply_integers(shape)) * c10::elementSize(dtype);
  if (!is_on_disk() || bytes == 0) return at::empty(shape, dtype);
  const int descriptor = nameless_file(folder_, bytes);
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (address == MAP_FAILED) {
    const int code = errno;
    ::close(descriptor);
    refuse(folder_, bytes, code);
  }
  const auto pages = DiskPages::of_process();
  pages->add({address, bytes, descriptor});
  const auto discard = [pages, bytes, descriptor](void* at) {
    pages->remove(at);
    ::munmap(at, bytes);
    ::close(descriptor);
  };
  return at::from_blob(address, shape, discard, dtype);
}

bool is_on_disk(const Tensor& array) {
  return array.defined() && array.is_cpu() && DiskPages::of_process()->contains(array.const_data_ptr());
}

std::filesystem::path folder_for_arrays(double bytes) {
  const char* chosen = std::getenv("TMPDIR");
  const auto folders = chosen != nullptr && *chosen != '\0' ? std::vector<std::filesystem::path>{chosen}
                                                            : std::vector<std::filesystem::path>{"/var/tmp", "/tmp"};
  std::string lacks;
  for (const auto& folder : folders) {
    const auto lack = lack_of(folder, bytes);
    if (lack.empty()) return folder;
    lacks += fmt::format("{}{} {}", lacks.empty() ? "" : ", ", folder.string(), lack);
  }
  throw FileError(fmt::format("the samples take {:.3g} GB, for which there is room neither in memory nor on disk: {}; {}",
                              bytes / 1e9, lacks, remedy));
}

}  // namespace mpol
