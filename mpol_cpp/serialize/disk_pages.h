#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace mpol {

/// Keeps the mapped files of a process from filling its resident memory: a thread looks every 10 ms how much of files is mapped
/// in, and beyond resident_bytes_of_disk (array_room.h) more than before gives all pages of these files back to the system, after
/// it had it begin to write out those that changed. Values are not touched: a page that is used again comes from the system's
/// cache, or from the disk.
class DiskPages {
 public:
  struct Region {
    void* address = nullptr;
    std::size_t bytes = 0;
    int file = -1;  ///< what is mapped there
  };

  /// The one of this process; it and its thread are there while somebody holds it.
  static std::shared_ptr<DiskPages> of_process();

  DiskPages() = default;
  ~DiskPages();
  DiskPages(const DiskPages&) = delete;
  DiskPages& operator=(const DiskPages&) = delete;

  void add(const Region& region);
  bool contains(const void* address);
  /// From here on the region that begins there may be unmapped.
  void remove(const void* address);

 private:
  void watch();
  void give_back();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::vector<Region> regions_;
  std::thread thread_;
};

}  // namespace mpol
