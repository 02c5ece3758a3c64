#include <mpol_cpp/gridding/cells/stream_median.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace mpol::gridding {
namespace {

constexpr std::uint64_t bins = 1 << 16;

// Bit patterns of floating-point numbers >= 0 are ordered as the numbers are.
std::uint64_t pattern(double value) { return std::bit_cast<std::uint64_t>(value + 0.0); }

}  // namespace

void RankSearch::count(std::uint64_t bits) {
  if (bits < low_) return;
  const auto bin = (bits - low_) >> shift_;
  if (bin < bins) ++histogram_[bin];
}

void RankSearch::add(double value) {
  const auto bits = pattern(value);
  if (!histogram_.empty()) return count(bits);
  if (bits < low_ || (bits - low_) >> shift_ >= bins) return;
  if (held_ < capacity_) {
    if (!values_) values_.emplace(capacity_);
    values_->data()[held_++] = value;
    return;
  }
  histogram_.assign(bins, 0);
  for (std::size_t i = 0; i < held_; ++i) count(pattern(values_->data()[i]));
  count(bits);
  values_.reset();
  held_ = 0;
}

std::uint64_t RankSearch::add(const double* values, std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  std::uint64_t added = 0;
  if (shift_ < widest_shift || !histogram_.empty() || held_ + size > capacity_) {
    for (std::size_t i = 0; i < size; ++i) {
      if (!(values[i] >= 0)) continue;
      add(values[i]);
      ++added;
    }
    return added;
  }
  if (!values_) values_.emplace(capacity_);
  auto* held = values_->data() + held_;
  for (std::size_t i = 0; i < size; ++i) {
    held[added] = values[i];
    added += values[i] >= 0 ? 1 : 0;
  }
  held_ += added;
  return added;
}

void RankSearch::begin_with(const RankSearch& other) {
  low_ = other.low_;
  shift_ = other.shift_;
  below_ = other.below_;
  histogram_ = other.histogram_;
}

std::optional<double> RankSearch::resolve(std::uint64_t rank) {
  if (!histogram_.empty()) {
    narrow(rank);
    if (shift_ >= 0) return std::nullopt;
    return std::bit_cast<double>(low_);
  }
  while (cut_around(rank - below_)) continue;
  auto* values = values_->data();
  const auto wanted = rank - below_;
  std::nth_element(values + placed_, values + wanted, values + held_);
  placed_ = wanted;
  return values[wanted];
}

/// Drops the numbers that are not near those of a rank and the next, as a sample tells; false where that is not worth while.
bool RankSearch::cut_around(std::uint64_t wanted) {
  constexpr std::size_t sampled = 512, margin = 48;  // more than four standard deviations of a rank in the sample
  if (placed_ > 0 || held_ < 4 * sampled) return false;
  auto* values = values_->data();
  std::array<double, sampled> sample;
  for (std::size_t i = 0; i < sampled; ++i) sample[i] = values[i * held_ / sampled];
  std::sort(sample.begin(), sample.end());
  const auto middle = static_cast<std::size_t>(wanted) * sampled / held_;
  const double low = middle < margin ? 0 : sample[middle - margin];
  const double high = middle + margin < sampled ? sample[middle + margin] : std::numeric_limits<double>::infinity();
  std::size_t below = 0, near = 0;
  for (std::size_t i = 0; i < held_; ++i) below += values[i] < low ? 1 : 0;
  for (std::size_t i = 0; i < held_; ++i) near += values[i] >= low && values[i] <= high ? 1 : 0;
  if (wanted < below || wanted + 1 >= below + near || near > held_ / 2) return false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < held_; ++i) {
    const double value = values[i];
    values[kept] = value;
    kept += value >= low && value <= high ? 1 : 0;
  }
  held_ = kept;
  below_ += below;
  return true;
}

void RankSearch::narrow(std::uint64_t rank) {
  std::uint64_t bin = 0;
  while (below_ + histogram_[bin] <= rank) below_ += histogram_[bin++];
  low_ += bin << shift_;
  shift_ = shift_ == 0 ? -1 : std::max(0, shift_ - 16);
  histogram_.clear();
}

void StreamMedian::add(const double* values, std::int64_t count) {
  if (first_pass_) {
    count_ += lower_.add(values, count);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (values[i] >= 0) add(values[i]);
  }
}

void StreamMedian::add(double value) {
  if (first_pass_) ++count_;
  if (!lower_value_) lower_.add(value);
  if (!first_pass_ && !upper_value_) upper_.add(value);
}

bool StreamMedian::finish_pass() {
  if (count_ == 0) return true;
  if (first_pass_ && lower_.holds_all()) {
    lower_value_ = lower_.resolve((count_ - 1) / 2);
    upper_value_ = lower_.resolve(count_ / 2);
    return true;
  }
  if (first_pass_) upper_.begin_with(lower_);
  first_pass_ = false;
  if (!lower_value_) lower_value_ = lower_.resolve((count_ - 1) / 2);
  if (!upper_value_) upper_value_ = count_ % 2 == 1 && lower_value_ ? lower_value_ : upper_.resolve(count_ / 2);
  return lower_value_ && upper_value_;
}

}  // namespace mpol::gridding
