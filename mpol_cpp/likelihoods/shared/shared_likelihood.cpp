#include <mpol_cpp/likelihoods/shared/shared_likelihood.h>

#include <algorithm>
#include <optional>
#include <typeinfo>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/Event.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/streams.h>
#include <mpol_cpp/likelihoods/known_gradient.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {
namespace {

constexpr std::int64_t most_pieces_of_samples = 1000;

/// Where a stream's work is, to be waited for by another stream; nothing where work is done at once.
using Mark = std::optional<c10::Event>;

Mark mark_of(torch::Device device) {
  if (!detail::has_streams(device)) return std::nullopt;
  return detail::record_event(device, detail::EventTiming::off);
}

void follow(const Mark& mark, torch::Device device) {
  if (mark) mark->block(detail::current_stream(device));
}

}  // namespace

std::vector<Share> sample_shares(std::int64_t count, const std::vector<double>& speeds) {
  const auto pieces = std::min(count, most_pieces_of_samples);
  auto shares = shares_by_speed(pieces, speeds);
  for (auto& share : shares)
    share = {count * share.begin / std::max<std::int64_t>(pieces, 1), count * share.end / std::max<std::int64_t>(pieces, 1)};
  return shares;
}

SharedLikelihoodImpl::SharedLikelihoodImpl(std::shared_ptr<DeviceGroup> devices, const GridCoords& coords,
                                           const Visibilities& visibilities, ChannelMap channels, const Maker& make)
    : Likelihood(coords),
      devices_(std::move(devices)),
      channels_(std::move(channels)),
      shares_(sample_shares(visibilities.nvis(), devices_->speeds())),
      parts_(shares_.size()) {
  {
    const auto all = losses::detail::loose_samples(coords, visibilities, channels_);
    samples_ = all.visibilities.data().numel();
    normalizer_ = static_cast<double>(all.occupied_cells);
  }
  devices_->run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
    const auto rank = static_cast<std::size_t>(ranks->rank());
    const auto& share = shares_[rank];
    if (share.is_empty()) return;
    parts_[rank] = make(visibilities.select(at::arange(share.begin, share.end, torch::kInt64)), device);
  });
}

Tensor SharedLikelihoodImpl::chi_squared(const Tensor& sky) {
  return losses::detail::chi_squared_with_gradient(sky, *this, "the likelihood shared by devices");
}

Tensor SharedLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  return sum_of_parts(sky, gradient, accumulate, &Likelihood::value_and_gradient);
}

Tensor SharedLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  return sum_of_parts(sky, gradient, accumulate, &Likelihood::channel_values_and_gradient);
}

Tensor SharedLikelihoodImpl::sum_of_parts(const Tensor& sky, Tensor& gradient, Accumulate accumulate, Evaluate evaluate) {
  losses::detail::check_sky_shape(sky, channels_.nchan(), coords().npix());
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_gradient;
  const auto image = sky.detach();
  const auto place = sky.device();
  const auto is_given = mark_of(place);
  std::vector<Tensor> values(parts_.size()), gradients(parts_.size());
  std::vector<Mark> done(parts_.size());
  devices_->run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
    const torch::NoGradGuard no_gradient_here;
    const auto rank = static_cast<std::size_t>(ranks->rank());
    if (!parts_[rank]) return;
    follow(is_given, place);
    const auto own = image.to(device).contiguous();
    auto own_gradient = at::empty_like(own);
    values[rank] = (*parts_[rank].*evaluate)(own, own_gradient, Accumulate::overwrite).to(place);
    gradients[rank] = own_gradient.to(place);
    done[rank] = mark_of(place);
  });
  Tensor value;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    if (!parts_[rank]) continue;
    follow(done[rank], place);
    if (!value.defined() && accumulate == Accumulate::overwrite) gradient.copy_(gradients[rank]);
    else gradient.add_(gradients[rank]);
    value = value.defined() ? value + values[rank] : values[rank];
  }
  return value;
}

std::int64_t SharedLikelihoodImpl::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& part : parts_) bytes += part ? part->memory_bytes() : 0;
  return bytes;
}

bool SharedLikelihoodImpl::tells_channels() const {
  return typeid(*this) == typeid(SharedLikelihoodImpl) &&
         std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return !part || part->tells_channels(); });
}

bool SharedLikelihoodImpl::is_quadratic() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return !part || part->is_quadratic(); });
}

std::string SharedLikelihoodImpl::name() const {
  for (const auto& part : parts_) {
    if (part) return part->name();
  }
  return "shared";
}

}  // namespace mpol
