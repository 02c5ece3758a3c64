#include <mpol_cpp/likelihoods/forms/loose_samples.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/gridding/cells/visit_cells.h>

namespace mpol::losses::detail {
namespace {

/// The data channels of all image channels, and to which image channel each of them belongs.
std::vector<std::int64_t> all_sources(const ChannelMap& channels, std::vector<std::int64_t>& image_channels) {
  std::vector<std::int64_t> sources;
  for (std::int64_t image_channel = 0; image_channel < channels.nchan(); ++image_channel) {
    for (const auto channel : channels.sources[static_cast<std::size_t>(image_channel)]) {
      sources.push_back(channel);
      image_channels.push_back(image_channel);
    }
  }
  return sources;
}

}  // namespace

ImageChannels::ImageChannels(std::vector<std::int64_t> channels, std::int64_t nchan)
    : channels_(std::move(channels)), nchan_(nchan), one_to_one_(data_channels() == nchan) {
  for (std::size_t i = 0; i < channels_.size(); ++i) one_to_one_ = one_to_one_ && channels_[i] == static_cast<std::int64_t>(i);
}

Tensor ImageChannels::index(torch::Device device) const {
  const std::lock_guard lock(mutex_);
  auto& own = indices_[device.str()];
  if (!own.defined()) own = at::tensor(channels_, torch::kInt64).to(device);
  return own;
}

Tensor ImageChannels::images(const Tensor& sky) const { return one_to_one_ ? sky : sky.index_select(-3, index(sky.device())); }

void ImageChannels::add(const Tensor& of_data_channels, Tensor& gradient) const {
  if (one_to_one_) {
    gradient.add_(of_data_channels);
    return;
  }
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    gradient.select(-3, channels_[i]).add_(of_data_channels.select(-3, static_cast<std::int64_t>(i)));
  }
}

Tensor ImageChannels::sum(const Tensor& of_data_channels, const Tensor& sky) const {
  return one_to_one_ ? of_data_channels : at::zeros_like(sky).index_add(-3, index(sky.device()), of_data_channels);
}

LooseSamples loose_samples(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels) {
  const auto& baselines = visibilities.baselines();
  coords.check_data_fit(baselines.max_abs_u(), baselines.max_abs_v());
  channels.check_sources(visibilities.nchan());
  std::vector<std::int64_t> image_channels;
  auto sources = all_sources(channels, image_channels);
  auto selected = visibilities.select_channels(sources);
  const auto occupied = at::zeros({channels.nchan(), coords.npix(), coords.npix()}, torch::kBool);
  mark_occupied(coords, selected.baselines(), image_channels, occupied);
  const auto cells = occupied.sum().item<std::int64_t>();
  return {std::move(selected), std::move(sources), std::move(image_channels), cells, occupied};
}

void mark_occupied(const GridCoords& coords, const Baselines& baselines, const std::vector<std::int64_t>& image_channels,
                   const Tensor& occupied) {
  const auto npix = coords.npix();
  for (std::size_t channel = 0; channel < image_channels.size(); ++channel) {
    auto* cells = occupied.mutable_data_ptr<bool>() + image_channels[channel] * npix * npix;
    constexpr std::int64_t block = std::int64_t{1} << 20;
    for (std::int64_t begin = 0; begin < baselines.nvis(); begin += block) {
      const auto end = std::min(baselines.nvis(), begin + block);
      const auto [u, v] = baselines.block(static_cast<std::int64_t>(channel), begin, end);
      gridding::visit_cells(coords, u.contiguous(), v.contiguous(),
                            [&](std::size_t cell) { std::atomic_ref(cells[cell]).store(true, std::memory_order_relaxed); });
    }
  }
}

}  // namespace mpol::losses::detail
