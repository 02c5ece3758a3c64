#include <mpol_cpp/objective/term.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/fourier_cube.h>

namespace mpol {
namespace {

bool usable_name(const std::string& name) {
  const auto usable = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name != "total" && name != "nll" && std::all_of(name.begin(), name.end(), usable);
}

void check_weights(const std::string& name, const std::vector<double>& weights) {
  if (weights.empty()) throw ValueError(fmt::format("term {} has no weight: give one, or one for each problem", name));
  for (const double weight : weights) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    throw ValueError(fmt::format("the weight of term {} is {}; it must be finite and >= 0", name, weight));
  }
}

/// A value with the slopes of another one.
Tensor with_slopes_of(const Tensor& sloped, const Tensor& value) { return sloped - sloped.detach() + value.detach(); }

/// Evaluates a term that looks `reach` channels far: whatever begins in a channel of this rank is this rank's.
Tensor value_beside(const Term::Function& function, const ModelOutput& output, const ChannelNeighbors& neighbors,
                    std::int64_t reach) {
  const auto around = neighbors.with_neighbors(output.sky, reach);
  const auto own = around.cube.narrow(-3, around.before, around.cube.size(-3) - around.before);
  const auto value = function({output.coords(), {}, own});
  if (around.before == 0 || !value.requires_grad()) return value;
  return with_slopes_of(function({output.coords(), {}, around.cube}), value);
}

/// Evaluates a term of the norms of spectra: other ranks' channels are one more channel, which has their norm.
Tensor value_of_norms(const Term::Function& function, const ModelOutput& output, const ChannelNeighbors& neighbors) {
  const auto own = output.sky.detach().square().sum({-3}, /*keepdim=*/true);
  auto all = own.contiguous().clone();
  neighbors.sum(all);
  const auto others = (all - own).clamp_min(0).sqrt();
  const auto value = function({output.coords(), {}, at::cat({output.sky, others}, -3)});
  const auto part = value / static_cast<double>(neighbors.ranks());  // all ranks have the same sum
  return value.requires_grad() ? with_slopes_of(value, part) : part;
}

}  // namespace

const Tensor& ModelOutput::visibilities() const {
  if (!visibilities_.defined()) visibilities_ = FourierCubeImpl(coords_).forward(sky);
  return visibilities_;
}

Term::Term(std::string name, double weight, Function function)
    : name_(std::move(name)), weights_{weight}, function_(std::move(function)) {
  if (!usable_name(name_)) {
    throw ValueError(fmt::format("a term is named '{}'; use letters, digits and _, but not total or nll", name_));
  }
  check_weights(name_, weights_);
  if (!function_) throw ValueError(fmt::format("term {} has no function", name_));
}

Term Term::with_weights(std::vector<double> weights) const {
  check_weights(name_, weights);
  Term term(*this);
  term.weights_ = std::move(weights);
  return term;
}

Term Term::with_channel_factors(std::vector<double> factors) const {
  if (kind_ == TermKind::custom || joins_channels()) {
    throw ValueError(fmt::format("term {} has no weights of channels: {}", name_,
                                 kind_ == TermKind::custom ? "it may look at several of them at once" : "it joins them"));
  }
  check_weights(name_, factors);
  Term term(*this);
  term.channel_factors_ = std::move(factors);
  return term;
}

Tensor Term::evaluate_channels(const ModelOutput& output) const {
  const auto nchan = output.sky.size(-3);
  if (!channel_factors_.empty() && nchan != std::ssize(channel_factors_)) {
    throw ShapeError(fmt::format("term {} has weights of {} channels, the image {}", name_, channel_factors_.size(), nchan));
  }
  const auto apart = [](const Tensor& cube) { return cube.defined() ? cube.unsqueeze(-3) : cube; };  // a problem each
  const auto values = function_({output.coords(), apart(output.base), apart(output.sky), apart(output.signed_pixels)});
  return channel_factors_.empty() ? values : values * at::tensor(channel_factors_, values.options());
}

Term Term::over(const std::shared_ptr<ChannelNeighbors>& neighbors) const {
  if (!joins_channels()) return *this;
  Term term(*this);
  if (const auto reach = regularizer_of(kind_).reach; reach > 0) {
    term.function_ = [function = function_, neighbors, reach](const ModelOutput& output) {
      return value_beside(function, output, *neighbors, reach);
    };
  } else {
    term.function_ = [function = function_, neighbors](const ModelOutput& output) {
      return value_of_norms(function, output, *neighbors);
    };
  }
  return term;
}

bool Term::is_off() const {
  return std::all_of(weights_.begin(), weights_.end(), [](double weight) { return weight == 0; });
}

}  // namespace mpol
