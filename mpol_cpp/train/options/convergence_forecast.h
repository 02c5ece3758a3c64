#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace mpol {

/// Estimates when a fit that ends by converging will have done so. What its criteria still lack falls, once the large steps are
/// behind it, about like a power of the number of epochs; the power is taken from the last octave of epochs.
class ConvergenceForecast {
 public:
  /// Notes how many times as large as it may be the largest of the criteria is after so many epochs, more than were noted
  /// before. Values that are not positive and finite are passed over.
  void note(std::int64_t epochs, double excess);

  /// After how many epochs it will be as large as it may be, more than were noted. Nothing while fewer than three values of the
  /// last octave are known, or where they do not fall.
  std::optional<std::int64_t> expected_end() const;

 private:
  struct Point {
    std::int64_t epochs;
    double excess;
  };
  std::vector<Point> points_;  // of the last octave
};

}  // namespace mpol
