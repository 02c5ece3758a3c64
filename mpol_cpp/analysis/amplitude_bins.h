#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Whether the mean of |V|^2 keeps what noise adds to it, 2/w per sample: subtract it from data, keep it for models.
enum class NoiseBias {
  keep,     ///< for models, which have no noise
  subtract  ///< for data; what is left is 0 at least
};

/// Visibilities averaged in rings of equal width in q: what a summary shows as amplitude against baseline length.
struct AmplitudeBins {
  std::vector<double> q;          ///< mean baseline length, wavelengths
  std::vector<double> amplitude;  ///< root of the weighted mean of |V|^2, Jy
};

/// Sums over the samples in each ring, which may be added in blocks.
class AmplitudeSums {
 public:
  /// @param longest  no baseline is longer, wavelengths
  /// @param bins     number of rings from 0 to the longest; empty rings are left out  @throws ValueError unless >= 1
  explicit AmplitudeSums(double longest, std::int64_t bins = 60);

  /// @param q             (n) baseline lengths, wavelengths
  /// @param visibilities  (n) complex, Jy
  /// @param weights       (n) > 0
  /// @throws ShapeError when the shapes differ
  void add(const Tensor& q, const Tensor& visibilities, const Tensor& weights);

  /// Calls visit(numbers, count) with all sums, to which those of other samples in the same rings may be added.
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    for (auto& ring : rings_) {
      for (double* sum : {&ring.weight, &ring.power, &ring.q, &ring.count}) visit(sum, std::size_t{1});
    }
  }

  /// Averages of what was added so far, without empty rings.
  AmplitudeBins bins(NoiseBias noise_bias) const;

 private:
  struct Ring {
    double weight = 0, power = 0, q = 0, count = 0;
  };
  double width_;
  std::vector<Ring> rings_;
};

}  // namespace mpol
