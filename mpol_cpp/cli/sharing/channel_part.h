#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/distributed/shares.h>
#include <mpol_cpp/gridding/cells/scatter.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// The channels of a cube that one rank fits, with their data.
class ChannelPart {
 public:
  /// None: channels are not shared.
  ChannelPart() = default;
  /// This rank's share of the channels.
  /// @param select  gives the data of some of them
  /// @param speeds  of the ranks, the fastest first; empty: all alike
  /// @param statistics  gets those of its cells where it has channels; null: nobody asks
  ChannelPart(std::int64_t nchan, const std::function<Visibilities(const Share&)>& select, const GridCoords& coords,
              const std::shared_ptr<Communicator>& ranks, std::vector<double> speeds = {}, CellStatistics* statistics = nullptr);

  bool holds_channels() const { return shared_; }      ///< whether channels are shared
  bool has_work() const { return ranks_ != nullptr; }  ///< whether this rank has any
  /// Those that have channels.
  const std::shared_ptr<Communicator>& ranks() const { return ranks_; }
  std::int64_t first() const { return first_; }  ///< of this rank's channels among all
  const Visibilities& visibilities() const { return *visibilities_; }
  const ChannelMap& map() const { return map_; }
  const GriddedDataset& dataset() const { return dataset_; }  ///< float64, on the CPU

 private:
  bool shared_ = false;
  std::int64_t first_ = 0;
  std::shared_ptr<Communicator> ranks_;
  std::optional<Visibilities> visibilities_;
  ChannelMap map_;
  GriddedDataset dataset_{nullptr};
};

}  // namespace mpol::cli
