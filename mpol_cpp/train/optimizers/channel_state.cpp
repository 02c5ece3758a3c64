#include <mpol_cpp/train/optimizers/channel_state.h>

#include <vector>

#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/format.h>

namespace mpol::detail {
namespace {

constexpr std::int64_t dimensions_of_images = 3, channel_dimension = -3;

}  // namespace

ChannelState::ChannelState(Communicator& ranks, std::int64_t nchan, std::int64_t npix) : ranks_(ranks), own_(nchan), npix_(npix) {
  std::vector<double> channels(static_cast<std::size_t>(ranks.size()), 0.0);
  channels[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(nchan);
  ranks.sum(channels);
  for (std::size_t rank = 0; rank < channels.size(); ++rank) {
    const auto count = static_cast<std::int64_t>(channels[rank]);
    if (static_cast<std::int64_t>(rank) < ranks.rank()) begin_ += count;
    all_ += count;
  }
}

ChannelState::Kind ChannelState::kind_of(const std::string& name, const Tensor& tensor, std::int64_t channels) const {
  if (name.ends_with(".losses") || name.ends_with(".regularizers")) return Kind::sum;
  if (name.ends_with(".curvatures") || name.ends_with("_of_channels")) return Kind::per_channel;
  const bool images = tensor.dim() >= dimensions_of_images && tensor.size(-1) == npix_ && tensor.size(-2) == npix_ &&
                      tensor.size(channel_dimension) == channels;
  return images ? Kind::images : Kind::common;
}

NamedTensors ChannelState::gather(const NamedTensors& own) const {
  std::vector<double> names = {static_cast<double>(own.size())};
  ranks_.sum(names);
  if (names.front() != static_cast<double>(own.size()) * static_cast<double>(ranks_.size()))
    throw RankError(fmt::format("rank {} has a state of {} tensors, others of more or fewer", ranks_.rank(), own.size()));
  NamedTensors all;
  for (const auto& [name, tensor] : own) {
    auto whole = tensor;
    switch (kind_of(name, tensor, own_)) {
      case Kind::images:
        whole = ranks_.gather(tensor.to(torch::kCPU).movedim(channel_dimension, 0).contiguous());
        if (whole.defined()) whole = whole.movedim(0, channel_dimension).contiguous();
        break;
      case Kind::per_channel:
        whole = ranks_.gather(tensor.to(torch::kCPU).movedim(-1, 0).contiguous());
        if (whole.defined()) whole = whole.movedim(0, -1).contiguous();
        break;
      case Kind::sum:
        whole = tensor.to(torch::kCPU).clone();
        ranks_.all_reduce_sum(whole);
        break;
      case Kind::common:
        break;
    }
    if (ranks_.is_first()) all[name] = whole;
  }
  return all;
}

NamedTensors ChannelState::part(const NamedTensors& all) const {
  NamedTensors own;
  for (const auto& [name, tensor] : all) {
    switch (kind_of(name, tensor, all_)) {
      case Kind::images:
        own[name] = tensor.narrow(channel_dimension, begin_, own_).contiguous();
        break;
      case Kind::per_channel:
        own[name] = tensor.narrow(-1, begin_, own_).contiguous();
        break;
      case Kind::sum:
        own[name] = ranks_.is_first() ? tensor : at::zeros_like(tensor);
        break;
      case Kind::common:
        own[name] = tensor;
        break;
    }
  }
  return own;
}

}  // namespace mpol::detail
