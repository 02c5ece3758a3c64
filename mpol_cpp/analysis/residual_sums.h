#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <torch/types.h>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/analysis/field/wide_image.h>

namespace mpol {

/// Statistics and histogram of residuals (data minus model) that are never there all at once: samples are added in blocks.
/// Several passes over the same samples change nothing but their number.
class ResidualCounts {
 public:
  /// @param residual  (n) complex128, Jy
  /// @param weights   (n) float64, Jy^-2
  void add(const Tensor& residual, const Tensor& weights);
  /// Adds those that another one counted.
  void add(const ResidualCounts& more);

  /// Calls visit(numbers, count) with all sums, to which those of other samples may be added.
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    visit(magnitudes_.data(), magnitudes_.size());
    visit(values_.data(), values_.size());
    for (double* sum : {&count_, &sum_, &squares_}) visit(sum, std::size_t{1});
  }

  /// What residual_statistics() gives, with the median and what lies beyond four sigma to half a percent.
  ResidualStatistics statistics() const;
  /// What residual_histogram() gives with its defaults.
  ResidualHistogram histogram() const;

 private:
  /// Bins of |r| are those of its first bits: each octave has as many of equal width, from 2^first_octave on.
  static constexpr int bits_of_bin = 7, octaves = 40, first_octave = -14;
  static constexpr std::size_t magnitude_bins = std::size_t{octaves} << bits_of_bin, histogram_bins = 100;
  static constexpr double histogram_limit = 5;

  void count(double value);
  static std::size_t bin_of(double magnitude);
  static double lower_edge(std::size_t bin);
  /// |r| below which `part` of all values lie.
  double quantile(double part) const;

  std::array<double, magnitude_bins> magnitudes_ = {};  // of |r|
  std::array<double, histogram_bins> values_ = {};      // of r within the limit
  double count_ = 0, sum_ = 0, squares_ = 0;
};

/// The same, and a wide image of the residuals.
class ResidualSums {
 public:
  /// @param wide  the grid of the wide image
  explicit ResidualSums(const GridCoords& wide) : image_(wide) {}

  /// @param u, v      (n) float64, wavelengths
  /// @param residual  (n) complex128, Jy
  /// @param weights   (n) float64, Jy^-2
  void add(const Tensor& u, const Tensor& v, const Tensor& residual, const Tensor& weights) {
    add_to_image(u, v, residual, weights);
    count(residual, weights);
  }
  /// Adds to all but the image.
  void count(const Tensor& residual, const Tensor& weights) { counts_.add(residual, weights); }
  /// Adds to the image alone what add_counted() is told of otherwise.
  void add_to_image(const Tensor& u, const Tensor& v, const Tensor& residual, const Tensor& weights) {
    image_.add(u, v, residual, weights);
  }
  /// Adds residuals that were counted elsewhere.
  void add_counted(const ResidualCounts& counts) { counts_.add(counts); }

  /// Calls visit(numbers, count) with all sums, to which those of other samples on the same grid may be added.
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    counts_.visit_sums(visit);
    image_.visit_sums(visit);
  }

  ResidualStatistics statistics() const { return counts_.statistics(); }  ///< as those of ResidualCounts
  ResidualHistogram histogram() const { return counts_.histogram(); }     ///< the same
  WideMap wide() const { return image_.map(); }                           ///< the wide image of all residuals so far

 private:
  ResidualCounts counts_;
  WideImage image_;
};

}  // namespace mpol
