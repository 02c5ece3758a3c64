#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// How the brightness of data goes with frequency beside one image of them all: data = A (nu / nu_0)^index model.
struct SpectralSlope {
  double index = 0, error = 0;     ///< and its standard error, by the weights
  double lowest = 0, highest = 0;  ///< of the frequencies, Hz
};

/// How bright the data of each frequency are in units of a model that is the same for all, from samples that are never there all
/// at once. Several passes over the same samples change nothing but their number.
class FrequencyAmplitudes {
 public:
  /// Samples of one frequency: of a channel, or of a spectral window.
  struct Group {
    double frequency = 0;      ///< Hz
    std::int64_t samples = 0;  ///< each once
  };

  /// Sums of these groups, each of which add() names by its place.
  explicit FrequencyAmplitudes(const std::vector<Group>& groups) : sums_(groups.begin(), groups.end()) {}

  /// @param model, data  (n) complex128, Jy, of one group
  /// @param weights      (n) float64, Jy^-2
  void add(std::size_t group, const Tensor& model, const Tensor& data, const Tensor& weights);

  /// Calls visit(numbers, count) with all sums, to which those of other samples of the same groups may be added.
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    for (auto& group : sums_) {
      for (double* sum : {&group.product, &group.power, &group.seen}) visit(sum, std::size_t{1});
    }
  }

  /// The power law that fits the amplitudes a = sum w Re(conj(m) d) / sum w |m|^2 best, whose variances are 1 / sum w |m|^2.
  /// @return nothing for fewer than two frequencies, without a model, and where no power law fits
  std::optional<SpectralSlope> slope() const;

 private:
  struct Sums : Group {
    explicit Sums(const Group& group) : Group(group) {}
    double product = 0, power = 0;  // sum w Re(conj(m) d), sum w |m|^2
    double seen = 0;                // samples that came by
  };
  std::vector<Sums> sums_;
};

}  // namespace mpol
