#include <mpol_cpp/cli/sharing/channel_part.h>

#include <algorithm>
#include <vector>

#include <mpol_cpp/gridding/data_averager.h>

namespace mpol::cli {

ChannelPart::ChannelPart(std::int64_t nchan, const std::function<Visibilities(const Share&)>& select, const GridCoords& coords,
                         const std::shared_ptr<Communicator>& ranks, std::vector<double> speeds, CellStatistics* statistics)
    : shared_(true) {
  if (speeds.empty()) speeds.assign(static_cast<std::size_t>(ranks->size()), 1.0);
  const auto shares = shares_by_speed(nchan, speeds);
  ranks_ = ranks->first(std::count_if(shares.begin(), shares.end(), [](const Share& share) { return !share.is_empty(); }));
  if (!ranks_) return;
  const auto share = shares[static_cast<std::size_t>(ranks_->rank())];
  first_ = share.begin;
  visibilities_ = select(share);
  map_ = ChannelMap::cube(share.size());
  const auto options =
      DataAveragerOptions().channel_map(map_).scatter_check(ScatterCheck::off).keep_statistics(statistics != nullptr);
  const DataAverager averager(coords, *visibilities_, options);
  dataset_ = averager.to_dataset();
  if (statistics != nullptr) *statistics = averager.cell_statistics();
}

}  // namespace mpol::cli
