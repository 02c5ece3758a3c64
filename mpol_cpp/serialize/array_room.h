#pragma once

#include <filesystem>
#include <string>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Where large arrays are kept: in memory, or on disk, where they may be larger than memory. On disk each array is a file without
/// a name, which is gone with the array however the process ends; its tensor is used like any other, and the system reads and
/// writes its pages. At most some 64 MiB of all of them stay in this process's resident memory for longer than 10 ms (the system
/// goes on to keep what it has room for, which is no memory of this process).
class ArrayRoom {
 public:
  /// Memory.
  ArrayRoom() = default;
  /// Files in a folder, which must be on a disk.
  static ArrayRoom on_disk(std::filesystem::path folder);

  bool is_on_disk() const { return !folder_.empty(); }             ///< else in memory
  const std::filesystem::path& folder() const { return folder_; }  ///< of the files; empty in memory

  /// An array with contiguous, arbitrary values on the CPU.
  /// @throws FileError when no file can be made, or the disk has no room for it; of memory what at::empty throws
  Tensor empty(at::IntArrayRef shape, torch::Dtype dtype) const;

 private:
  std::filesystem::path folder_;
};

/// Whether an array is in one of these files.
bool is_on_disk(const Tensor& array);

/// Bytes of resident memory that arrays on disk take together, about.
inline constexpr double resident_bytes_of_disk = 64 << 20;

/// A folder for arrays on disk of so many bytes together: TMPDIR where it is set, else /var/tmp or /tmp, the first that has room.
/// Folders that are in memory themselves (tmpfs) are not taken.
/// @throws FileError when there is none, with what each lacks
std::filesystem::path folder_for_arrays(double bytes);

}  // namespace mpol
