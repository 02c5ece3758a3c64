#include <mpol_cpp/distributed/shares.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

Share share_of(std::int64_t count, std::int64_t rank, std::int64_t size) {
  if (count < 0 || rank < 0 || rank >= size)
    throw ValueError(
        fmt::format("a share of {} things for rank {} of {}: ranks go from 0 to their number less one", count, rank, size));
  const auto each = count / size, more = count % size;
  const auto begin = rank * each + std::min(rank, more);
  return {begin, begin + each + (rank < more ? 1 : 0)};
}

std::vector<std::int64_t> owners_by_speed(std::int64_t count, const std::vector<double>& speeds) {
  const bool usable = !speeds.empty() &&
                      std::all_of(speeds.begin(), speeds.end(), [](double speed) { return std::isfinite(speed) && speed > 0; });
  if (count < 0 || !usable)
    throw ValueError(
        fmt::format("{} things for ranks of the speeds {}: speeds must be finite and above 0", count, fmt::join(speeds, ", ")));
  std::vector<std::int64_t> owners;
  std::vector<double> things(speeds.size(), 0.0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::size_t first = 0;
    for (std::size_t rank = 1; rank < speeds.size(); ++rank) {
      if ((things[rank] + 1) / speeds[rank] < (things[first] + 1) / speeds[first]) first = rank;
    }
    things[first] += 1;
    owners.push_back(static_cast<std::int64_t>(first));
  }
  return owners;
}

std::vector<Share> shares_by_speed(std::int64_t count, const std::vector<double>& speeds) {
  const auto owners = owners_by_speed(count, speeds);
  std::vector<Share> shares;
  std::int64_t begin = 0;
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    const auto size = std::count(owners.begin(), owners.end(), static_cast<std::int64_t>(rank));
    shares.push_back({begin, begin + size});
    begin += size;
  }
  return shares;
}

}  // namespace mpol
