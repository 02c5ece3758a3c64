#include <cmath>
#include <cstdint>
#include <limits>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/matching/rotation_scorer.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// Lengths below this part of what they are the difference of are rounding.
double least_contrast(torch::Dtype dtype) {
  return 16 * (dtype == torch::kFloat64 ? std::numeric_limits<double>::epsilon()
                                        : static_cast<double>(std::numeric_limits<float>::epsilon()));
}

}  // namespace

MatchScaling::MatchScaling(MatchScore score, const Tensor& weights, std::int64_t nr, std::int64_t nphi)
    : centered_(score == MatchScore::correlation),
      images_normalized_(score == MatchScore::correlation || score == MatchScore::cosine),
      templates_normalized_(score != MatchScore::product),
      nphi_(nphi),
      weights_(weights.defined() ? weights.detach().to(torch::kCPU, torch::kFloat64).contiguous()
                                 : at::ones({nr}, torch::kFloat64)) {
  if (weights_.dim() != 1 || weights_.size(0) != nr) {
    throw ShapeError(
        fmt::format("weights of shape ({}) for {} bins in radius: expected one for each", fmt::join(weights_.sizes(), ", "), nr));
  }
  if (!weights_.isfinite().all().item<bool>() || weights_.min().item<double>() < 0 || weights_.max().item<double>() <= 0) {
    throw ValueError(fmt::format("weights of radii from {} to {}: they must be finite and not negative, and some positive",
                                 weights_.min().item<double>(), weights_.max().item<double>()));
  }
}

Tensor MatchScaling::scaled(const Tensor& maps, bool normalized) const {
  const auto weights = weights_.to(maps.options()).view({-1, 1}), root = weights_.sqrt().to(maps.options()).view({-1, 1});
  const auto sum = [](const Tensor& values) { return values.sum({1, 2}, true, torch::kFloat64); };
  auto values = maps;
  if (centered_) {
    const double all = weights_.sum().item<double>() * static_cast<double>(nphi_);
    values = maps - (sum(maps * weights) / all).to(maps.scalar_type());
  }
  if (!normalized) return values * root;
  const auto squared = sum(values.square() * weights), before = centered_ ? sum(maps.square() * weights) : squared;
  const double least = least_contrast(maps.scalar_type());
  const auto factor = at::where(squared > least * least * before, squared.rsqrt(), at::zeros({}, squared.options()));
  return values * (root * factor.to(maps.scalar_type()));
}

Tensor MatchScaling::images(const Tensor& maps) const { return scaled(maps, images_normalized_); }
Tensor MatchScaling::templates(const Tensor& maps) const { return scaled(maps, templates_normalized_); }

Tensor MatchScaling::points(const PolarTemplates::Points& points) const {
  const auto* starts = points.starts.const_data_ptr<std::int64_t>();
  const auto* bins = points.bins.const_data_ptr<std::int32_t>();
  const auto* values = points.values.const_data_ptr<double>();
  const auto* weights = weights_.const_data_ptr<double>();
  const double all = weights_.sum().item<double>() * static_cast<double>(nphi_);
  const double least = least_contrast(torch::kFloat64);
  auto scaled = at::empty_like(points.values);
  auto* out = scaled.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i + 1 < points.starts.size(0); ++i) {
    double sum = 0, squares = 0;
    for (auto k = starts[i]; k < starts[i + 1]; ++k) {
      sum += weights[bins[k] / nphi_] * values[k];
      squares += weights[bins[k] / nphi_] * values[k] * values[k];
    }
    const double squared = centered_ ? squares - sum * sum / all : squares;
    const double length = squared > least * squares ? std::sqrt(squared) : 0;
    const double factor = !templates_normalized_ ? 1 : length > 0 ? 1 / length : 0;
    for (auto k = starts[i]; k < starts[i + 1]; ++k) out[k] = factor * std::sqrt(weights[bins[k] / nphi_]) * values[k];
  }
  return scaled;
}

Tensor MatchScaling::profiles(const PolarTemplates::Points& points) const {
  const auto* starts = points.starts.const_data_ptr<std::int64_t>();
  const auto* bins = points.bins.const_data_ptr<std::int32_t>();
  const auto* values = points.values.const_data_ptr<double>();
  const auto n = points.starts.size(0) - 1, nr = weights_.size(0);
  auto profiles = at::zeros({n, nr}, torch::kFloat64);
  auto* out = profiles.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < n; ++i)
    for (auto k = starts[i]; k < starts[i + 1]; ++k) out[i * nr + bins[k] / nphi_] += values[k];
  if (centered_) profiles = profiles - (profiles * weights_).sum(1, true) / weights_.sum();
  return normalized_profiles(profiles * weights_.sqrt());
}

Tensor normalized_profiles(const Tensor& profiles) {
  const auto squared = profiles.square().sum(-1, true);
  return profiles * at::where(squared > 0, squared.rsqrt(), at::zeros({}, squared.options()));
}

}  // namespace mpol
