#include <mpol_cpp/visibilities/visibilities.h>

#include <numeric>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/visibilities/channel_rows.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol {
namespace {

/// (nvis) -> (1, nvis), contiguous on the CPU, in the dtype it came in.
Tensor by_channel(const Tensor& values, const char* name) {
  if (values.dim() != 1 && values.dim() != 2) {
    throw ShapeError(fmt::format("{} has shape ({}); (nvis) or (nchan, nvis) is needed", name, fmt::join(values.sizes(), ", ")));
  }
  const auto held = values.detach().to(torch::kCPU).resolve_conj().resolve_neg().contiguous();
  return held.dim() == 1 ? held.unsqueeze(0) : held;
}

}  // namespace

Visibilities::Visibilities(Baselines baselines, Tensor data, Tensor weights)
    : baselines_(std::move(baselines)), data_(by_channel(data, "data")), weights_(by_channel(weights, "weight")) {
  if (!data_.is_complex()) {
    throw ShapeError(fmt::format("data is {}; complex64 or complex128 is needed", c10::toString(data_.scalar_type())));
  }
  if (data_.sizes() != weights_.sizes()) {
    throw ShapeError(fmt::format("data has shape ({}) and weight ({}); they must be the same", fmt::join(data_.sizes(), ", "),
                                 fmt::join(weights_.sizes(), ", ")));
  }
  if (data_.numel() == 0)
    throw DataError(fmt::format("data has shape ({}): no visibilities; at least one is needed", fmt::join(data_.sizes(), ", ")));
  if (baselines_.nvis() != nvis() || (!baselines_.shared() && baselines_.nchan() != nchan())) {
    throw ShapeError(fmt::format("u and v are {} samples in {} channel(s), data {} in {}; they must agree, or u and v be (nvis)",
                                 baselines_.nvis(), baselines_.nchan(), nvis(), nchan()));
  }
  largest_magnitude(data_, "data");
  check_positive(weights_, "weight");
  if (baselines_.frequencies().defined()) frequencies_ = baselines_.frequencies().expand({nchan()}).contiguous();
}

void Visibilities::set_frequencies(Tensor frequencies) {
  if (frequencies.dim() != 1 || frequencies.size(0) != nchan()) {
    throw ShapeError(fmt::format("frequencies have shape ({}); one per channel is needed, ({})",
                                 fmt::join(frequencies.sizes(), ", "), nchan()));
  }
  const auto given = frequencies.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  check_positive(given, "frequency");
  if (baselines_.frequencies().defined() && !frequencies_.equal(given)) {
    throw ValueError(
        "the frequencies differ from those by which the baselines in metres are scaled: make the baselines with them");
  }
  frequencies_ = given;
}

template <typename Choose>
VisibilityBlock Visibilities::widened(std::int64_t channel, const std::pair<Tensor, Tensor>& baselines,
                                      const Choose& choose) const {
  const auto samples = [&](const Tensor& values, torch::Dtype dtype) {
    return choose(values.select(0, channel)).to(torch::kCPU, dtype).contiguous();
  };
  return {baselines.first.contiguous(), baselines.second.contiguous(), samples(data_, torch::kComplexDouble),
          samples(weights_, torch::kFloat64)};
}

VisibilityBlock Visibilities::block(std::int64_t channel, std::int64_t begin, std::int64_t end) const {
  check_channel(channel);
  return widened(channel, baselines_.block(channel, begin, end),
                 [&](const Tensor& values) { return values.slice(0, begin, end); });
}

VisibilityBlock Visibilities::pick(std::int64_t channel, const Tensor& indices) const {
  check_channel(channel);
  return widened(channel, baselines_.pick(channel, indices),
                 [&](const Tensor& values) { return values.index_select(0, indices); });
}

void Visibilities::check_channel(std::int64_t channel) const {
  if (channel < 0 || channel >= nchan())
    throw ValueError(fmt::format("channel {} was asked for; there are {}", channel, nchan()));
}

Visibilities Visibilities::select(const Tensor& samples) const {
  auto own = baselines_.select(samples);  // checks them
  const auto there = samples.to(data_.device());
  Visibilities selected(std::move(own), data_.index_select(-1, there), weights_.index_select(-1, there));
  selected.frequencies_ = frequencies_;
  selected.observation_ = observation_;
  return selected;
}

Visibilities Visibilities::select_channels(const std::vector<std::int64_t>& channels) const {
  if (channels.empty()) throw ValueError("no channels were selected; name at least one");
  for (const auto channel : channels) {
    if (channel < 0 || channel >= nchan()) {
      throw ValueError(fmt::format("channel {} is not there; the channels are 0 to {}", channel, nchan() - 1));
    }
  }
  Visibilities selected(baselines_.select_channels(channels), channel_rows(data_, channels), channel_rows(weights_, channels));
  if (frequencies_.defined()) selected.frequencies_ = channel_rows(frequencies_, channels);
  selected.observation_ = observation_;
  return selected;
}

std::int64_t Visibilities::memory_bytes() const {
  return baselines_.memory_bytes() +
         static_cast<std::int64_t>(data_.nbytes() + weights_.nbytes() + (frequencies_.defined() ? frequencies_.nbytes() : 0));
}

void ChannelMap::check_sources(std::int64_t data_channels) const {
  for (std::size_t image_channel = 0; image_channel < sources.size(); ++image_channel) {
    for (const auto channel : sources[image_channel]) {
      if (channel >= 0 && channel < data_channels) continue;
      throw ValueError(fmt::format("image channel {} wants data channel {}, but the data have channels 0 to {}", image_channel,
                                   channel, data_channels - 1));
    }
  }
}

ChannelMap ChannelMap::cube(std::int64_t nchan) {
  ChannelMap map;
  for (std::int64_t channel = 0; channel < nchan; ++channel) map.sources.push_back({channel});
  return map;
}

ChannelMap ChannelMap::continuum(std::int64_t nchan) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(nchan));
  std::iota(all.begin(), all.end(), 0);
  return {{std::move(all)}};
}

}  // namespace mpol
