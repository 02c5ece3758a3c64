#include <mpol_cpp/visibilities/baselines.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/serialize/sha256.h>
#include <mpol_cpp/visibilities/channel_rows.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol {
namespace {

Tensor on_cpu(const Tensor& values) { return values.detach().to(torch::kCPU).contiguous(); }

/// Values of two dtypes take the wider one.
Tensor as_wide_as(const Tensor& values, const Tensor& other) {
  return on_cpu(values.to(c10::promoteTypes(values.scalar_type(), other.scalar_type())));
}

void check_pair(const Tensor& u, const Tensor& v, std::int64_t most_dimensions) {
  if (u.sizes() != v.sizes()) {
    throw ShapeError(fmt::format("u has shape ({}) and v ({}); they must be the same", fmt::join(u.sizes(), ", "),
                                 fmt::join(v.sizes(), ", ")));
  }
  if (u.dim() < 1 || u.dim() > most_dimensions) {
    throw ShapeError(fmt::format("u and v have shape ({}); {} is needed", fmt::join(u.sizes(), ", "),
                                 most_dimensions == 1 ? "(nvis)" : "(nvis) or (nchan, nvis)"));
  }
  if (u.numel() == 0) throw DataError("there are no baselines (0 samples); at least one is needed");
}

}  // namespace

void check_samples(const Tensor& samples, std::int64_t nvis) {
  if (!samples.defined() || samples.dim() != 1 || samples.scalar_type() != torch::kInt64 || !samples.is_cpu()) {
    throw ShapeError("samples are selected by their indices, an int64 tensor (n) on the CPU");
  }
  if (samples.numel() == 0) throw ValueError("no samples were selected; name at least one");
  const auto first = samples.min().item<std::int64_t>(), last = samples.max().item<std::int64_t>();
  if (first < 0 || last >= nvis) {
    throw ValueError(fmt::format("sample {} is not there; the samples are 0 to {}", first < 0 ? first : last, nvis - 1));
  }
}

Baselines::Baselines(Tensor u, Tensor v, Tensor frequencies)
    : u_(as_wide_as(u, v)), v_(as_wide_as(v, u)), frequencies_(std::move(frequencies)) {
  double largest_scale = 1;
  if (frequencies_.defined()) {
    check_positive(frequencies_, "frequency");
    largest_scale = units::metres_to_lambda(1, frequencies_.max().item<double>());
  }
  max_abs_u_ = largest_magnitude(u_, "u") * largest_scale;
  max_abs_v_ = largest_magnitude(v_, "v") * largest_scale;
}

Baselines Baselines::in_lambda(Tensor u, Tensor v) {
  check_pair(u, v, 2);
  return Baselines(std::move(u), std::move(v), Tensor());
}

Baselines Baselines::in_metres(Tensor u, Tensor v, Tensor frequencies) {
  check_pair(u, v, 1);
  if (!frequencies.defined() || frequencies.dim() != 1 || frequencies.numel() == 0) {
    throw ShapeError("baselines in metres need the frequencies of the channels, (nchan), in Hz");
  }
  return Baselines(std::move(u), std::move(v), on_cpu(frequencies.to(torch::kFloat64)));
}

std::int64_t Baselines::nvis() const { return u_.size(-1); }

std::int64_t Baselines::nchan() const {
  if (frequencies_.defined()) return frequencies_.size(0);
  return u_.dim() == 1 ? 1 : u_.size(0);
}

bool Baselines::shared() const { return nchan() == 1; }

std::pair<Tensor, Tensor> Baselines::stacked() const {
  std::vector<Tensor> u, v;
  const auto count = shared() ? 1 : nchan();
  for (std::int64_t k = 0; k < count; ++k) {
    auto [columns, rows] = channel(k);
    u.push_back(std::move(columns));
    v.push_back(std::move(rows));
  }
  return {at::stack(u), at::stack(v)};
}

double Baselines::wavelengths_per_unit(std::int64_t channel) const {
  if (!frequencies_.defined()) return 1;
  return units::metres_to_lambda(1, frequencies_.const_data_ptr<double>()[shared() ? 0 : channel]);
}

void Baselines::check_channel(std::int64_t channel) const {
  if (channel >= 0 && (shared() || channel < nchan())) return;
  throw ValueError(fmt::format("channel {} was asked for; there are {}", channel, nchan()));
}

void Baselines::check_block(std::int64_t channel, std::int64_t begin, std::int64_t end) const {
  check_channel(channel);
  if (begin < 0 || begin > end || end > nvis()) {
    throw ValueError(fmt::format("samples {} to {} were asked for; there are {}", begin, end, nvis()));
  }
}

Tensor Baselines::of_channel(const Tensor& stored, std::int64_t channel) const {
  return stored.dim() == 2 ? stored.select(0, shared() ? 0 : channel) : stored;
}

Tensor Baselines::in_wavelengths(const Tensor& stored, std::int64_t channel) const {
  const auto widened = stored.to(torch::kFloat64);
  return frequencies_.defined() ? widened * wavelengths_per_unit(channel) : widened;
}

std::pair<Tensor, Tensor> Baselines::block(std::int64_t channel, std::int64_t begin, std::int64_t end) const {
  check_block(channel, begin, end);
  const auto convert = [&](const Tensor& stored) {
    return in_wavelengths(of_channel(stored, channel).slice(0, begin, end), channel);
  };
  return {convert(u_), convert(v_)};
}

void Baselines::write_block(std::int64_t channel, std::int64_t begin, std::int64_t end, const Tensor& u, const Tensor& v) const {
  check_block(channel, begin, end);
  const auto convert = [&](const Tensor& stored, const Tensor& wavelengths) {
    wavelengths.copy_(of_channel(stored, channel).slice(0, begin, end));
    if (frequencies_.defined()) wavelengths.mul_(wavelengths_per_unit(channel));
  };
  convert(u_, u);
  convert(v_, v);
}

std::pair<Tensor, Tensor> Baselines::pick(std::int64_t channel, const Tensor& indices) const {
  check_channel(channel);
  const auto convert = [&](const Tensor& stored) {
    return in_wavelengths(of_channel(stored, channel).index_select(0, indices), channel);
  };
  return {convert(u_), convert(v_)};
}

std::string Baselines::digest() const {
  Sha256 hash;
  for (const auto& values : {u_, v_, frequencies_}) {
    if (values.defined()) hash.update(values.const_data_ptr(), values.nbytes());
  }
  return hash.finish();
}

Baselines Baselines::select(const Tensor& samples) const {
  check_samples(samples, nvis());
  return Baselines(u_.index_select(-1, samples), v_.index_select(-1, samples), frequencies_);
}

Baselines Baselines::select_channels(const std::vector<std::int64_t>& channels) const {
  if (channels.empty()) throw ValueError("no channels were selected; name at least one");
  if (shared()) return *this;
  for (const auto channel : channels) {
    if (channel < 0 || channel >= nchan()) {
      throw ValueError(fmt::format("channel {} is not there; the channels are 0 to {}", channel, nchan() - 1));
    }
  }
  if (frequencies_.defined()) return Baselines(u_, v_, channel_rows(frequencies_, channels));
  return Baselines(channel_rows(u_, channels), channel_rows(v_, channels), Tensor());
}

std::int64_t Baselines::memory_bytes() const {
  return static_cast<std::int64_t>(u_.nbytes() + v_.nbytes() + (frequencies_.defined() ? frequencies_.nbytes() : 0));
}

}  // namespace mpol
