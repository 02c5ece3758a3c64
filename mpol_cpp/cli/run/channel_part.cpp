#include <mpol_cpp/cli/run/channel_part.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include <mpol_cpp/gridding/data_averager.h>

namespace mpol::cli {

ChannelPart::ChannelPart(const Visibilities& all, const GridCoords& coords, const std::shared_ptr<Communicator>& ranks)
    : shared_(true), ranks_(ranks->first(std::min(ranks->size(), all.nchan()))) {
  if (!ranks_) return;
  const auto share = share_of(all.nchan(), ranks_->rank(), ranks_->size());
  std::vector<std::int64_t> own(static_cast<std::size_t>(share.size()));
  std::iota(own.begin(), own.end(), share.begin);
  visibilities_ = all.select_channels(own);
  map_ = ChannelMap::cube(share.size());
  dataset_ =
      DataAverager(coords, *visibilities_, DataAveragerOptions().channel_map(map_).scatter_check(ScatterCheck::off)).to_dataset();
}

}  // namespace mpol::cli
