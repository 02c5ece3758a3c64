#include <mpol_cpp/serialize/disk_pages.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <fstream>

#include <mpol_cpp/serialize/array_room.h>

namespace mpol {
namespace {

constexpr std::chrono::milliseconds interval{10};

/// Resident pages of this process that lie in files, bytes.
double resident_file_bytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0, of_files = 0;
  return file >> size >> resident >> of_files ? of_files * static_cast<double>(::sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace

std::shared_ptr<DiskPages> DiskPages::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<DiskPages> existing;
  const std::lock_guard lock(mutex);
  auto pages = existing.lock();
  if (!pages) existing = pages = std::make_shared<DiskPages>();
  return pages;
}

DiskPages::~DiskPages() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DiskPages::add(const Region& region) {
  const std::lock_guard lock(mutex_);
  regions_.push_back(region);
  if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
}

void DiskPages::remove(const void* address) {
  const std::lock_guard lock(mutex_);
  std::erase_if(regions_, [address](const Region& region) { return region.address == address; });
}

bool DiskPages::contains(const void* address) {
  const std::lock_guard lock(mutex_);
  return std::any_of(regions_.begin(), regions_.end(), [address](const Region& region) {
    const auto* begin = static_cast<const char*>(region.address);
    return !std::less<>()(static_cast<const char*>(address), begin) &&
           std::less<>()(static_cast<const char*>(address), begin + region.bytes);
  });
}

void DiskPages::watch() {
  double others = resident_file_bytes();  // libraries, other files
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, interval, [this] { return ends_; })) {
    if (resident_file_bytes() < others + resident_bytes_of_disk) continue;
    give_back();
    others = resident_file_bytes();
  }
}

void DiskPages::give_back() {
  for (const auto& region : regions_) {
    ::sync_file_range(region.file, 0, 0, SYNC_FILE_RANGE_WRITE);
    ::madvise(region.address, region.bytes, MADV_DONTNEED);
  }
}

}  // namespace mpol
