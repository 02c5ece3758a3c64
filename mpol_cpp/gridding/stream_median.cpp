#include <mpol_cpp/gridding/stream_median.h>

#include <algorithm>
#include <bit>

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
  auto* values = values_->data();
  const auto wanted = rank - below_;
  std::nth_element(values + placed_, values + wanted, values + held_);
  placed_ = wanted;
  return values[wanted];
}

void RankSearch::narrow(std::uint64_t rank) {
  std::uint64_t bin = 0;
  while (below_ + histogram_[bin] <= rank) below_ += histogram_[bin++];
  low_ += bin << shift_;
  shift_ = shift_ == 0 ? -1 : std::max(0, shift_ - 16);
  histogram_.clear();
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
