#pragma once

#include <cmath>
#include <complex>

#include <mpol_cpp/io/measurement_set/hands.h>
#include <mpol_cpp/io/measurement_set/measurement_set.h>
#include <mpol_cpp/io/readers/visibility_reader.h>

namespace mpol::io {

/// One hand of a sample.
struct Hand {
  std::complex<float> value;
  float weight;
  bool flagged;

  bool weighs() const { return weight > 0 || std::isnan(weight); }
  bool finite() const { return std::isfinite(value.real()) && std::isfinite(value.imag()) && std::isfinite(weight); }
  bool good() const { return !flagged && weighs() && finite(); }
};

/// Combines the hands of samples, and counts what is left out.
class HandCombination {
 public:
  HandCombination(const HandPair& hands, SetPhases phases) : hands_(hands), conjugates_(phases == SetPhases::conjugated) {}

  /// A sample of a row that counts. @returns its weight, 0 where it is left out
  float combine(const Hand& a, const Hand& b, std::complex<float>& value, DroppedSamples& dropped) const {
    const bool both = hands_.b.has_value();
    if (both && hands_.weighted_mean && !a.flagged && !b.flagged && a.weight > 0 && b.weight > 0) {  // most samples
      const float sum = a.weight + b.weight, part_a = a.weight / sum, part_b = b.weight / sum;
      const std::complex<float> mean(part_a * a.value.real() + part_b * b.value.real(),
                                     part_a * a.value.imag() + part_b * b.value.imag());
      if (std::isfinite(sum) && std::isfinite(mean.real()) && std::isfinite(mean.imag())) return take(mean, sum, value);
    }
    if (both && hands_.one_suffices && a.good() != b.good())
      return take(a.good() ? a.value : b.value, a.good() ? a.weight : b.weight, value);
    if (a.flagged || (both && b.flagged)) return ++dropped.flagged, 0;
    if (!a.weighs() || (both && !b.weighs())) return ++dropped.without_weight, 0;
    if (!a.finite() || (both && !b.finite())) return ++dropped.not_finite, 0;
    if (!both) return take(a.value, a.weight, value);
    const float sum = a.weight + b.weight;
    if (hands_.weighted_mean) return take((a.weight * a.value + b.weight * b.value) / sum, sum, value);
    return take(0.5F * (times(hands_.factor_a, a.value) + times(hands_.factor_b, b.value)), 4 * a.weight * (b.weight / sum),
                value);
  }

 private:
  // Products by hand: those of std::complex look for infinities.
  static std::complex<float> times(std::complex<float> a, std::complex<float> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
  float take(std::complex<float> combined, float weight, std::complex<float>& value) const {
    value = conjugates_ ? std::conj(combined) : combined;
    return weight;
  }

  HandPair hands_;
  bool conjugates_;
};

/// Adds the reasons that hold for single samples and rows.
inline void add(DroppedSamples& all, const DroppedSamples& more) {
  all.flagged_rows += more.flagged_rows;
  all.autocorrelations += more.autocorrelations;
  all.flagged += more.flagged;
  all.without_weight += more.without_weight;
  all.not_finite += more.not_finite;
}

}  // namespace mpol::io
