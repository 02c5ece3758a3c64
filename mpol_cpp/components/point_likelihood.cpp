#include <mpol_cpp/components/point_likelihood.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/cholesky_inverse.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/real.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/sample_image.h>

namespace mpol {
namespace {

constexpr std::int64_t samples_of_sum = std::int64_t{1} << 18;
constexpr std::int64_t working_bytes = std::int64_t{1} << 28;
constexpr double least_pivot = 1e-9;  // of a Gram matrix whose diagonal is 1

/// Calls use(channel, samples) for blocks of the samples of some data channels.
template <typename Use>
void each_block(const Visibilities& visibilities, const std::vector<std::int64_t>& channels, const Use& use) {
  for (const auto channel : channels) {
    for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += samples_of_sum)
      use(visibilities.block(channel, begin, std::min(visibilities.nvis(), begin + samples_of_sum)));
  }
}

/// One radian over the root of the weighted mean of q^2, arcsec.
double radian_of_phase(const Visibilities& visibilities, const ChannelMap& channels) {
  double moment = 0, weight = 0;
  for (const auto& own : channels.sources) {
    each_block(visibilities, own, [&](const VisibilityBlock& samples) {
      moment += (samples.weights * (samples.u.square() + samples.v.square())).sum().item<double>();
      weight += samples.weights.sum().item<double>();
    });
  }
  return moment > 0 ? 1 / (2 * units::pi * std::sqrt(moment / weight) * units::arcsec) : 0;
}

/// e_j at points of the uv plane: 1, and -2 pi i (u, v) times the unit of shifts, each times the source's phase.
Tensor response(const PointComponent& source, std::int64_t unknown, double shift_unit, const Tensor& u, const Tensor& v) {
  const auto phase = point_visibilities(source, u, v);
  if (unknown == 0) return phase;
  const auto slope = (unknown == 1 ? u : v) * (-2 * units::pi * shift_unit * units::arcsec);
  return phase * at::complex(at::zeros_like(slope), slope);
}

}  // namespace

PointLikelihoodImpl::PointLikelihoodImpl(std::shared_ptr<Likelihood> image, const Visibilities& visibilities,
                                         const ChannelMap& channels, const std::vector<PointComponent>& sources)
    : Likelihood(image->coords()), image_(std::move(image)), shift_unit_(radian_of_phase(visibilities, channels)) {
  if (sources.empty()) throw ValueError("a likelihood beside point sources has none: give one, or take the other likelihood");
  const torch::NoGradGuard no_grad;
  const auto count = static_cast<std::int64_t>(sources.size()) * unknowns, nchan = channels.nchan(), npix = coords().npix();
  const auto response_of = [&](std::int64_t j, const Tensor& u, const Tensor& v) {
    return response(sources[static_cast<std::size_t>(j / unknowns)], j % unknowns, shift_unit_, u, v);
  };
  auto images = at::empty({nchan, count, npix, npix}, torch::kFloat64);
  auto products = at::zeros({nchan, count, 1}, torch::kFloat64), gram = at::zeros({nchan, count, count}, torch::kFloat64);
  const gridding::SampleImage maker(coords(), visibilities.baselines(), working_bytes);
  for (std::int64_t channel = 0; channel < nchan; ++channel) {
    const auto& own = channels.sources[static_cast<std::size_t>(channel)];
    each_block(visibilities, own, [&](const VisibilityBlock& samples) {
      std::vector<Tensor> all;
      for (std::int64_t j = 0; j < count; ++j) all.push_back(response_of(j, samples.u, samples.v));
      const auto responses = at::stack(all), weighted = responses.conj() * samples.weights;
      products[channel].add_(at::real(at::matmul(weighted, samples.data.unsqueeze(1))));
      gram[channel].add_(at::real(at::matmul(weighted, responses.transpose(0, 1))));
    });
    std::vector<gridding::ImageOfSamples> made;
    made.reserve(static_cast<std::size_t>(count));
    for (std::int64_t j = 0; j < count; ++j) made.push_back({.scale = coords().cell_area(), .image = images[channel][j]});
    maker.make(own, made, [&](const gridding::SampleRange& range, std::span<const Tensor> values) {
      const auto weights = visibilities.block(range.channel, range.begin, range.end).weights;
      for (std::size_t j = 0; j < values.size(); ++j) {
        if (values[j].defined()) values[j].copy_(response_of(static_cast<std::int64_t>(j), range.u, range.v) * weights);
      }
    });
  }
  // A unit diagonal makes the pivots tell how far responses are alike.
  const auto scale = gram.diagonal(0, -2, -1).clamp_min(1e-300).rsqrt();
  const auto scaled = gram * scale.unsqueeze(-1) * scale.unsqueeze(-2);
  const auto [root, info] = at::linalg_cholesky_ex(scaled);
  if (info.any().item<bool>() || !(root.diagonal(0, -2, -1).square().min().item<double>() > least_pivot)) {
    throw ValueError(
        fmt::format("{} point sources cannot be told apart by these baselines: take out one of those that lie "
                    "nearest to each other",
                    sources.size()));
  }
  images_ = images.view({nchan, count, npix * npix});
  products_ = products;
  inverse_ = at::cholesky_inverse(root) * scale.unsqueeze(-1) * scale.unsqueeze(-2);
  add_tensors();
}

void PointLikelihoodImpl::reset() {
  image_ = with_interface<Likelihood>(image_->as_module().clone(), "Likelihood");  // of this copy alone
  add_tensors();
}

/// Tensors of its own: a copy of the module that is moved leaves the first alone. They stay float64 wherever the module is cast.
void PointLikelihoodImpl::add_tensors() {
  images_ = register_metadata("images", images_.variable_data());
  products_ = register_metadata("products", products_.variable_data());
  inverse_ = register_metadata("inverse", inverse_.variable_data());
  register_module("image", std::shared_ptr<torch::nn::Module>(image_, &image_->as_module()));
}

Tensor PointLikelihoodImpl::rest(const Tensor& sky) const {
  const auto pixels = sky.reshape({-1, images_.size(0), images_.size(2), 1}).to(torch::kFloat64);
  return products_ - at::matmul(images_, pixels);
}

Tensor PointLikelihoodImpl::amplitudes_of(const Tensor& sky) const { return at::matmul(inverse_, rest(sky)); }

Tensor PointLikelihoodImpl::amplitudes(const Tensor& sky) const {
  const torch::NoGradGuard no_grad;
  const auto on_device = amplitudes_of(sky.to(images_.device()).unsqueeze(0));
  return on_device.view({images_.size(0), -1, unknowns}).to(torch::kCPU);
}

Tensor PointLikelihoodImpl::chi_squared(const Tensor& sky) {
  const auto left = rest(sky);
  const auto taken = (left * at::matmul(inverse_, left)).sum({-3, -2, -1});
  return image_->chi_squared(sky).to(torch::kFloat64) - taken.view(sky.sizes().slice(0, sky.dim() - 3));
}

Tensor PointLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  const auto value = image_->value_and_gradient(sky, gradient, accumulate);
  return value - take_sources(sky, gradient).sum(-1).view(value.sizes());
}

Tensor PointLikelihoodImpl::channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  const auto values = image_->channel_values_and_gradient(sky, gradient, accumulate);
  return values - take_sources(sky, gradient).view(values.sizes());
}

Tensor PointLikelihoodImpl::take_sources(const Tensor& sky, Tensor& gradient) const {
  const torch::NoGradGuard no_grad;
  const auto left = rest(sky), fitted = at::matmul(inverse_, left);
  const auto slopes = at::matmul(images_.transpose(-2, -1), fitted).mul_(2);
  gradient.add_(slopes.view(sky.sizes()).to(gradient.scalar_type()));
  return (left * fitted).sum({-2, -1});
}

}  // namespace mpol
