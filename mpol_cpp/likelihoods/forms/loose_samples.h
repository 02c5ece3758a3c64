#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::losses::detail {

/// Loose visibilities as a likelihood wants them.
struct LooseSamples {
  Visibilities visibilities;                 ///< the data channels of all image channels, in their order
  std::vector<std::int64_t> sources;         ///< which of those given they are
  std::vector<std::int64_t> image_channels;  ///< of each of them
  std::int64_t occupied_cells;               ///< of the grid, for each image channel, summed over them
  Tensor occupied;                           ///< these cells, (image channels, npix, npix) bool, ground order
};

/// Which image channel each data channel belongs to, as kernels on any device want it. Nothing waits for a device where it
/// was used before.
class ImageChannels {
 public:
  /// @param channels  of each data channel
  /// @param nchan     of images
  ImageChannels(std::vector<std::int64_t> channels, std::int64_t nchan);

  std::int64_t nchan() const { return nchan_; }
  std::int64_t operator[](std::size_t data_channel) const { return channels_[data_channel]; }
  std::int64_t data_channels() const { return static_cast<std::int64_t>(channels_.size()); }
  /// True where each data channel is the image channel of the same index.
  bool one_to_one() const { return one_to_one_; }

  /// The image of each data channel, (…, data channels, npix, npix); differentiable.
  Tensor images(const Tensor& sky) const;
  /// Adds what data channels give to their image channels, one after the other: the order of sums is fixed.
  void add(const Tensor& of_data_channels, Tensor& gradient) const;
  /// The differentiable sum into a new tensor shaped like `sky`. @param sky  gives the shape
  Tensor sum(const Tensor& of_data_channels, const Tensor& sky) const;

 private:
  Tensor index(torch::Device device) const;

  std::vector<std::int64_t> channels_;
  std::int64_t nchan_;
  bool one_to_one_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Tensor> indices_;  // by device
};

/// @throws ValueError for a channel that is not there; DataError when baselines do not fit the grid
LooseSamples loose_samples(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels);

/// Marks the cells of the grid that hold samples of each image channel.
/// @param image_channels  of each channel of the baselines
/// @param occupied        (image channels, npix, npix) bool, ground order
void mark_occupied(const GridCoords& coords, const Baselines& baselines, const std::vector<std::int64_t>& image_channels,
                   const Tensor& occupied);

}  // namespace mpol::losses::detail
