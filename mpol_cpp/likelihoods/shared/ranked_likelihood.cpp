#include <mpol_cpp/likelihoods/shared/ranked_likelihood.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/known_gradient.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>

namespace mpol {
namespace {

constexpr std::int64_t most_letters = 32;                 // of a likelihood's name
constexpr std::uint8_t quadratic = 1, told_channels = 2;  // what a likelihood says of itself

/// Cells of the grid that hold samples of any rank, in all image channels.
std::int64_t occupied_cells(Communicator& ranks, const GridCoords& coords, const std::optional<Visibilities>& share,
                            const ChannelMap& channels, std::int64_t& samples) {
  auto holders = at::zeros({channels.nchan(), coords.npix(), coords.npix()}, torch::kInt32);
  std::vector<double> sum = {0};
  if (share) {
    const auto own = losses::detail::loose_samples(coords, *share, channels);
    holders = own.occupied.to(torch::kInt32);
    sum = {static_cast<double>(own.visibilities.data().numel())};
  }
  ranks.sum(sum);
  ranks.all_reduce_sum(holders);
  samples = static_cast<std::int64_t>(sum.front());
  return holders.count_nonzero().item<std::int64_t>();
}

}  // namespace

RankedLikelihoodImpl::RankedLikelihoodImpl(std::shared_ptr<Communicator> ranks, const GridCoords& coords,
                                           const std::optional<Visibilities>& share, const ChannelMap& channels,
                                           torch::Device device, const Maker& make)
    : Likelihood(coords),
      ranks_(std::move(ranks)),
      service_(*ranks_),
      nchan_(channels.nchan()),
      device_(device),
      meeting_place_(ranks_->takes(device) ? device : torch::Device(torch::kCPU)) {
  normalizer_ = static_cast<double>(occupied_cells(*ranks_, coords, share, channels, samples_));
  if (samples_ == 0) throw ValueError("no rank has visibilities; give at least one of them a share");
  if (share) own_ = make(*share);
  agree_on_kind();
}

void RankedLikelihoodImpl::agree_on_kind() {
  const auto owner = [&] {
    std::vector<double> has(static_cast<std::size_t>(ranks_->size()), 0.0);
    has[static_cast<std::size_t>(ranks_->rank())] = own_ ? 1 : 0;
    ranks_->sum(has);
    return std::distance(has.begin(), std::find(has.begin(), has.end(), 1.0));
  }();
  auto words = at::zeros({1 + most_letters}, torch::kUInt8);
  auto* letters = words.mutable_data_ptr<std::uint8_t>();
  if (own_) {
    const auto name = own_->name();
    letters[0] = (own_->is_quadratic() ? quadratic : 0) | (own_->tells_channels() ? told_channels : 0);
    std::copy_n(name.begin(), std::min<std::size_t>(name.size(), most_letters), letters + 1);
  }
  ranks_->broadcast(words, owner);
  is_quadratic_ = (letters[0] & quadratic) != 0;
  tells_channels_ = (letters[0] & told_channels) != 0;
  name_ = std::string(letters + 1, std::find(letters + 1, letters + 1 + most_letters, 0));
}

Tensor RankedLikelihoodImpl::evaluate(Tensor& images) {
  ranks_->broadcast(images);
  auto values = at::zeros({images.size(0), nchan_}, images.options().dtype(torch::kFloat64));
  if (own_) {
    const auto sky = images.to(device_);
    auto gradient = at::empty_like(sky);
    if (tells_channels_) values.copy_(own_->channel_values_and_gradient(sky, gradient, Accumulate::overwrite));
    else values.select(1, 0).copy_(own_->value_and_gradient(sky, gradient, Accumulate::overwrite));
    images.copy_(gradient);
  } else {
    images.zero_();
  }
  ranks_->all_reduce_sum(values);
  ranks_->all_reduce_sum(images);
  return values;
}

Tensor RankedLikelihoodImpl::chi_squared(const Tensor& sky) {
  return losses::detail::chi_squared_with_gradient(sky, *this, "the likelihood shared by ranks");
}

Tensor RankedLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  return evaluate_with_all(sky, gradient, accumulate).sum(-1);
}

Tensor RankedLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  if (!tells_channels()) return Likelihood::channel_values_and_gradient(sky, gradient, accumulate);
  return evaluate_with_all(sky, gradient, accumulate);
}

Tensor RankedLikelihoodImpl::evaluate_with_all(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  losses::detail::check_sky_on(device_, sky, nchan_, coords().npix(), name_);
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_gradient;
  auto images = at::empty({sky.numel() / (nchan_ * coords().npix() * coords().npix()), nchan_, coords().npix(), coords().npix()},
                          sky.options().device(meeting_place_).requires_grad(false));
  images.copy_(sky.detach().reshape(images.sizes()));
  service_.ask({images.size(0), sky.scalar_type() == torch::kFloat64 ? 1 : 0});
  const auto values = evaluate(images);
  const auto found = images.to(sky.device()).view(sky.sizes());
  if (accumulate == Accumulate::add) gradient.add_(found);
  else gradient.copy_(found);
  return values.to(sky.device()).view(sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 2)));
}

void RankedLikelihoodImpl::serve() {
  const torch::NoGradGuard no_gradient;
  service_.serve([&](const RankService::Words& words) {
    const auto [problems, is_double] = words;
    auto images = at::empty({problems, nchan_, coords().npix(), coords().npix()},
                            at::TensorOptions().dtype(is_double ? torch::kFloat64 : torch::kFloat32).device(meeting_place_));
    evaluate(images);
  });
}

}  // namespace mpol
