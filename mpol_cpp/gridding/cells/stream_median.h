#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <mpol_cpp/ops/memory/page_array.h>

namespace mpol::gridding {

/// The value of a given rank among numbers >= 0 that pass by, perhaps several times. Keeps them all while they are few;
/// of more it keeps a histogram, which tells in which narrow range to look during the next pass.
class RankSearch {
 public:
  explicit RankSearch(std::size_t capacity) : capacity_(capacity) {}

  void add(double value);
  /// Adds those of some numbers that are not negative, and says how many these are.
  std::uint64_t add(const double* values, std::int64_t count);
  /// Whether every number of the range is still here.
  bool holds_all() const { return histogram_.empty(); }
  /// Ends a pass: the value of that rank (0 = smallest), or nothing when another pass is needed. While it holds all
  /// numbers it can be asked for several ranks, in increasing order.
  std::optional<double> resolve(std::uint64_t rank);
  /// Looks for another rank from the histogram of another search.
  void begin_with(const RankSearch& other);

 private:
  void count(std::uint64_t bits);
  void narrow(std::uint64_t rank);
  bool cut_around(std::uint64_t wanted);

  static constexpr int widest_shift = 47;

  std::size_t capacity_;
  std::uint64_t low_ = 0;     // the range of bit patterns looked at begins here …
  int shift_ = widest_shift;  // … and has 2^16 bins of 2^shift_ patterns
  std::uint64_t below_ = 0;   // numbers below the range
  std::optional<PageArray<double>> values_;
  std::size_t held_ = 0;                  // numbers in values_
  std::size_t placed_ = 0;                // those before it are no larger than any behind it
  std::vector<std::uint64_t> histogram_;  // empty while values_ holds every number of the range
};

/// The exact median (mean of the middle two) of numbers >= 0 in bounded memory:
/// `do { for (…) median.add(x); } while (!median.finish_pass());`
class StreamMedian {
 public:
  explicit StreamMedian(std::size_t capacity = 3 * (std::size_t{1} << 18)) : lower_(capacity), upper_(capacity) {}

  void add(double value);
  /// Adds those of some numbers that are not negative.
  void add(const double* values, std::int64_t count);
  /// Ends a pass; false when all numbers must come by once more.
  bool finish_pass();

  std::uint64_t count() const { return count_; }
  /// 0 when there were no numbers.
  double value() const { return count_ == 0 ? 0 : 0.5 * (*lower_value_ + *upper_value_); }

 private:
  bool first_pass_ = true;
  std::uint64_t count_ = 0;
  RankSearch lower_, upper_;
  std::optional<double> lower_value_, upper_value_;
};

}  // namespace mpol::gridding
