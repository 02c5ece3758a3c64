#pragma once

#include <cstdint>
#include <string>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// How far samples scatter about their cell's mean in units of the sigma that their weights claim.
struct Scatter {
  double real = 0;         ///< median over cells with more than one sample; about 0.8 to 1 when weights are right
  double imag = 0;         ///< (both are 0 when no cell has more than one sample)
  std::int64_t cells = 0;  ///< cells with more than one sample

  /// Medians above this mean that the weights are wrong (MPoL's bound).
  static constexpr double limit = 1.2;
  bool acceptable() const { return real <= limit && imag <= limit; }  ///< whether neither median is above the limit

  /// One line for people: the medians, the limit, and the factor by which the weights look wrong.
  std::string description() const;
};

/// Statistics of the samples in each occupied cell.
struct CellStatistics {
  Tensor cells;    ///< (ncells) int64, flat index into the packed (nchan, npix, npix) cube, increasing
  Tensor samples;  ///< (ncells) int64, samples averaged in the cell
  /// (ncells) float64: population standard deviation of Re (V - V_c) sqrt(w) over the samples of the cell, in units of
  /// sigma; 0 in a cell with one sample.
  Tensor real;
  Tensor imag;  ///< the same of the imaginary part
};

}  // namespace mpol
