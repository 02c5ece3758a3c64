#include <mpol_cpp/cli/options/sample_room.h>

#include <algorithm>
#include <limits>

#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/host/host_memory.h>

namespace mpol::cli {
namespace {

double memory_for(const SampleMemory& memory, std::int64_t nchan) {
  if (memory) return memory(nchan);
  const auto available = available_memory();
  return available ? *available / 2 : std::numeric_limits<double>::infinity();
}

}  // namespace

ArrayRoom room_for_samples(double bytes, std::int64_t nchan, const SampleMemory& memory) {
  const double may = memory_for(memory, nchan);
  if (bytes <= std::max(may, resident_bytes_of_disk)) return {};
  auto folder = folder_for_arrays(bytes);
  tell(
      fmt::format("streams     the samples take {}, of which {} fit into memory beside the rest: they are kept in {} and read "
                  "from there block by block",
                  memory_words(bytes), memory_words(std::max(0.0, may)), folder.string()));
  return ArrayRoom::on_disk(std::move(folder));
}

ArrayRoom room_beside(const Visibilities& visibilities, double bytes) {
  return is_on_disk(visibilities.data()) ? ArrayRoom::on_disk(folder_for_arrays(bytes)) : ArrayRoom();
}

double memory_of_samples(const Visibilities& visibilities) {
  return is_on_disk(visibilities.data()) ? resident_bytes_of_disk : static_cast<double>(visibilities.memory_bytes());
}

double disk_of_samples(const Visibilities& visibilities) {
  return is_on_disk(visibilities.data()) ? static_cast<double>(visibilities.memory_bytes()) : 0;
}

}  // namespace mpol::cli
