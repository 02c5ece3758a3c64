#include <mpol_cpp/io/readers/averaging_reader.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::io {
namespace {

constexpr double turn_of_earth = 7.2921159e-5;  // radian per second
constexpr double same_time = 1e-4;              // s, which times of a set may be off by rounding
constexpr double gap = 2;                       // smallest steps
constexpr std::size_t rows_of_block = 1 << 14;

/// A vector's values in a tensor of their own.
template <typename Value>
Tensor owned(const std::vector<Value>& values, at::IntArrayRef shape, torch::Dtype dtype) {
  return at::tensor(at::ArrayRef<Value>(values.data(), values.size()), dtype).view(shape);
}

}  // namespace

double AveragingCost::loss(double offset) const {
  const double turns = units::pi * longest * offset * units::arcsec;
  const double in_time = turns * turn_of_earth * seconds;
  if (in_time >= units::pi) return 1;
  const double kept_in_time = in_time > 0 ? std::sin(in_time) / in_time : 1;
  const double step = turns * relative_width, all = static_cast<double>(channels) * step;
  if (all >= units::pi) return 1;
  const double kept = step > 0 ? std::sin(all) / (static_cast<double>(channels) * std::sin(step)) : 1;
  return 1 - kept_in_time * kept;
}

double AveragingCost::offset_of(double part) const {
  double low = 0, high = 1;
  constexpr double farthest = 1e9;
  while (loss(high) < part) {
    low = high;
    high *= 2;
    if (high > farthest) return std::numeric_limits<double>::infinity();
  }
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (loss(middle) < part ? low : high) = middle;
  }
  return high;
}

AveragingReader::AveragingReader(std::unique_ptr<VisibilityReader> reader, const AveragingOptions& options)
    : reader_(std::move(reader)), options_(options), shape_(reader_->shape()) {
  if (!std::isfinite(options.seconds()) || options.seconds() < 0)
    throw ValueError(fmt::format("samples cannot be averaged over {} s; give a finite time >= 0", options.seconds()));
  if (options.channels() < 1)
    throw ValueError(fmt::format("{} channels cannot be averaged; give at least 1", options.channels()));
  cost_.seconds = options.seconds();
  cost_.channels = 1;
  for (std::size_t window = 0; window < shape_.windows.size(); ++window) group_channels(window, options.channels());
  ready_.resize(shape_.windows.size());
}

/// Groups neighbours, and describes what they become.
void AveragingReader::group_channels(std::size_t index, std::int64_t most) {
  auto& window = shape_.windows[index];
  const auto given = window;
  std::vector<std::size_t> group_of;
  std::vector<double> frequencies, scales;
  std::vector<std::int64_t> members;
  window.channels.clear();
  for (std::size_t c = 0; c < given.channels.size(); ++c) {
    const bool neighbor = c > 0 && std::abs(given.channels[c] - given.channels[c - 1]) == 1;
    if (!neighbor || members.back() == most) {
      window.channels.push_back(given.channels[c]);
      frequencies.push_back(0), scales.push_back(0), members.push_back(0);
    }
    group_of.push_back(members.size() - 1);
    ++members.back();
    scales.back() += given.wavelengths_per_unit[c];
    if (given.frequencies.defined()) frequencies.back() += given.frequencies[static_cast<std::int64_t>(c)].item<double>();
  }
  for (std::size_t group = 0; group < members.size(); ++group) {
    scales[group] /= static_cast<double>(members[group]);
    frequencies[group] /= static_cast<double>(members[group]);
  }
  const auto largest = *std::max_element(members.begin(), members.end());
  cost_.channels = std::max(cost_.channels, largest);
  if (given.frequencies.defined() && largest > 1) {
    double width = given.channel_width;
    for (std::size_t c = 1; width == 0 && c < given.channels.size(); ++c) {
      const auto at = static_cast<std::int64_t>(c);
      width = std::abs((given.frequencies[at] - given.frequencies[at - 1]).item<double>());
    }
    cost_.relative_width = std::max(cost_.relative_width, width / given.frequencies.min().item<double>());
  }
  window.wavelengths_per_unit = std::move(scales);
  if (given.frequencies.defined()) window.frequencies = at::tensor(frequencies, torch::kFloat64);
  window.channel_width *= static_cast<double>(largest);
  groups_.push_back(std::move(group_of));
}

std::optional<RowBlock> AveragingReader::next() {
  while (!ended_) {
    if (auto block = give(rows_of_block)) return block;
    if (const auto block = reader_->next()) {
      take(*block);
      continue;
    }
    for (auto& [key, bin] : bins_) close(bin, static_cast<std::size_t>(key[0]));
    bins_.clear();
    ended_ = true;
  }
  return give(1);
}

void AveragingReader::take(const RowBlock& block) {
  const auto window = static_cast<std::size_t>(block.window);
  const bool in_time = options_.seconds() > 0;
  if (in_time && (!block.times.defined() || !block.tracks.defined()))
    throw DataError("samples cannot be averaged in time: the file does not say when they were taken; average channels alone");
  const auto data = block.data.to(torch::kComplexFloat).contiguous();
  const auto weights = block.weights.to(torch::kFloat32).contiguous();
  const auto rows = data.size(0), nchan = data.size(1);
  const auto *u = block.u.const_data_ptr<double>(), *v = block.v.const_data_ptr<double>();
  const auto* times = block.times.defined() ? block.times.const_data_ptr<double>() : nullptr;
  const auto* tracks = in_time ? block.tracks.const_data_ptr<std::int64_t>() : nullptr;
  const auto* observations = block.observations.defined() ? block.observations.const_data_ptr<std::int32_t>() : nullptr;
  Bin alone;
  for (std::int64_t row = 0; row < rows; ++row) {
    Key key{block.window};
    if (in_time) std::copy_n(tracks + 5 * row, 5, key.begin() + 1);
    auto& bin = in_time ? bins_[key] : alone;
    if (in_time) {
      const double time = times[row], step = time - bin.last;
      const bool known = bin.smallest_step > 0;
      const bool ends = time < bin.first || time - bin.first >= options_.seconds() - same_time ||
                        (known && step > gap * bin.smallest_step + same_time);
      if (bin.open && ends) close(bin, window);
      if (bin.seen && step > same_time) bin.smallest_step = known ? std::min(bin.smallest_step, step) : step;
      if (!bin.open) bin.first = time;
      bin.last = time;
      bin.seen = true;
    }
    if (!in_time && times != nullptr) bin.first = bin.last = times[row];
    bin.has_time = times != nullptr;
    bin.observation = observations == nullptr ? -1 : observations[row];
    add_row(bin, window, u[row], v[row], data.const_data_ptr<c10::complex<float>>() + row * nchan,
            weights.const_data_ptr<float>() + row * nchan);
    if (!in_time) close(bin, window);
  }
}

void AveragingReader::add_row(Bin& bin, std::size_t window, double u, double v, const c10::complex<float>* data,
                              const float* weights) {
  const auto& groups = groups_[window];
  const auto& described = shape_.windows[window];
  if (!bin.open) {
    bin.sums.assign(described.channels.size(), 0);
    bin.weights.assign(described.channels.size(), 0);
    bin.u = bin.v = bin.weight = 0;
    bin.open = true;
  }
  double of_row = 0;
  for (std::size_t c = 0; c < groups.size(); ++c) {
    const double weight = weights[c];
    if (!(weight > 0)) continue;
    bin.sums[groups[c]] += weight * c10::complex<double>(data[c]);
    bin.weights[groups[c]] += weight;
    of_row += weight;
    cost_.longest = std::max(cost_.longest, std::hypot(u, v) * described.wavelengths_per_unit[groups[c]]);
  }
  if (of_row == 0) return;  // u and v may be no numbers
  bin.u += of_row * u;
  bin.v += of_row * v;
  bin.weight += of_row;
}

void AveragingReader::close(Bin& bin, std::size_t window) {
  if (!std::exchange(bin.open, false) || bin.weight == 0) return;
  auto& ready = ready_[window];
  ready.u.push_back(bin.u / bin.weight);
  ready.v.push_back(bin.v / bin.weight);
  ready.observations.push_back(bin.observation);
  if (bin.has_time) ready.times.push_back((bin.first + bin.last) / 2);
  for (std::size_t group = 0; group < bin.sums.size(); ++group) {
    const double weight = bin.weights[group];
    ready.data.push_back(weight > 0 ? c10::complex<float>(bin.sums[group] / weight) : c10::complex<float>());
    ready.weights.push_back(static_cast<float>(weight));
  }
}

/// The rows of a window that has at least so many of them.
std::optional<RowBlock> AveragingReader::give(std::size_t fewest) {
  for (std::size_t window = 0; window < ready_.size(); ++window) {
    if (ready_[window].u.size() < fewest) continue;
    const auto ready = std::exchange(ready_[window], {});
    const auto rows = static_cast<std::int64_t>(ready.u.size()), nchan = shape_.windows[window].nchan();
    RowBlock block;
    block.window = static_cast<std::int64_t>(window);
    block.u = owned(ready.u, {rows}, torch::kFloat64);
    block.v = owned(ready.v, {rows}, torch::kFloat64);
    block.data = owned(ready.data, {rows, nchan}, torch::kComplexFloat);
    block.weights = owned(ready.weights, {rows, nchan}, torch::kFloat32);
    block.observations = owned(ready.observations, {rows}, torch::kInt32);
    if (ready.times.size() == ready.u.size()) block.times = owned(ready.times, {rows}, torch::kFloat64);
    return block;
  }
  return std::nullopt;
}

}  // namespace mpol::io
