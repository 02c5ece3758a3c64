#pragma once

namespace mpol::ops {

/// A sum over pixels, in float64, spread over the lanes of a vector: each lane adds in a fixed order.
struct LaneSum {
  static constexpr int lanes = 16;
  alignas(64) double lane[lanes] = {};

  double total() const {
    double sum = 0;
    for (const double value : lane) sum += value;
    return sum;
  }
};

}  // namespace mpol::ops
