#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

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

/// The cells of a row.
struct HandCells {
  const std::complex<float>* data;  ///< (nchan, ncorr)
  const bool* flags;                ///< (nchan, ncorr)
  const float* weights;             ///< (nchan, ncorr), or (ncorr) for all channels
  std::int64_t ncorr;
  bool weights_by_channel;

  /// One hand of a channel.
  Hand hand(std::int64_t channel, std::int64_t number) const {
    const auto at = channel * ncorr + number;
    return {data[at], weights[weights_by_channel ? at : number], flags[at]};
  }
};

/// Combines the hands of samples, and counts what is left out.
class HandCombination {
 public:
  HandCombination(const HandPair& hands, SetPhases phases) : hands_(hands), conjugates_(phases == SetPhases::conjugated) {}

  /// The channels of a row that counts. @param values, weights  of each of them, 0 where a sample is left out
  void combine(const HandCells& cells, const std::vector<std::int64_t>& channels, std::complex<float>* values, float* weights,
               DroppedSamples& dropped) const {
    if (takes_means() && (cells.weights_by_channel ? mean_by_channel(cells, channels, values, weights, dropped)
                                                   : mean_of_row(cells, channels, values, weights, dropped)))
      return;
    const auto a = hands_.a, b = hands_.b.value_or(a);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      values[c] = {};
      weights[c] = combine(cells.hand(channels[c], a), cells.hand(channels[c], b), values[c], dropped);
    }
  }

  /// A sample of a row that counts. @returns its weight, 0 where it is left out
  float combine(const Hand& a, const Hand& b, std::complex<float>& value, DroppedSamples& dropped) const {
    const bool both = hands_.b.has_value();
    if (both && hands_.weighted_mean && !a.flagged && !b.flagged) {
      const Parts parts(a.weight, b.weight);
      const auto mean = parts.mean(a.value, b.value);
      if (parts.good() & finite(mean)) return take(mean, parts.sum, value);
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
  /// What each of two hands is worth in their mean.
  struct Parts {
    Parts(float weight_a, float weight_b)
        : sum(weight_a + weight_b), a(weight_a / sum), b(weight_b / sum), positive((weight_a > 0) & (weight_b > 0)) {}

    bool good() const { return positive & std::isfinite(sum); }
    std::complex<float> mean(std::complex<float> of_a, std::complex<float> of_b) const {
      return {a * of_a.real() + b * of_b.real(), a * of_a.imag() + b * of_b.imag()};
    }

    float sum, a, b;
    bool positive;
  };

  static bool finite(std::complex<float> value) { return std::isfinite(value.real()) & std::isfinite(value.imag()); }

  /// Whether samples are means of two hands of which neither stands for both.
  bool takes_means() const { return hands_.b.has_value() && hands_.weighted_mean && !hands_.one_suffices; }

  // Most rows have nothing to leave out but what is flagged. For these there are loops without branches; they are given up, and
  // nothing is counted, where another reason is found.

  bool mean_of_row(const HandCells& cells, const std::vector<std::int64_t>& channels, std::complex<float>* values, float* weights,
                   DroppedSamples& dropped) const {
    const Parts parts(cells.weights[hands_.a], cells.weights[*hands_.b]);
    return parts.good() && means(cells, channels, values, weights, dropped, [&](std::int64_t) { return parts; });
  }
  bool mean_by_channel(const HandCells& cells, const std::vector<std::int64_t>& channels, std::complex<float>* values,
                       float* weights, DroppedSamples& dropped) const {
    const auto *of_a = cells.weights + hands_.a, *of_b = cells.weights + *hands_.b;
    return means(cells, channels, values, weights, dropped, [&](std::int64_t at) { return Parts(of_a[at], of_b[at]); });
  }

  template <typename PartsAt>
  bool means(const HandCells& cells, const std::vector<std::int64_t>& channels, std::complex<float>* values, float* weights,
             DroppedSamples& dropped, const PartsAt& parts_at) const {
    const auto *data_a = cells.data + hands_.a, *data_b = cells.data + *hands_.b;
    const auto *flags_a = cells.flags + hands_.a, *flags_b = cells.flags + *hands_.b;
    const float sign = conjugates_ ? -1 : 1;
    std::int64_t flagged = 0;
    bool all_good = true;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const auto at = channels[c] * cells.ncorr;
      const auto parts = parts_at(at);
      const auto mean = parts.mean(data_a[at], data_b[at]);
      const bool left_out = flags_a[at] | flags_b[at];
      all_good &= left_out | (parts.good() & finite(mean));
      flagged += left_out;
      values[c] = {left_out ? 0.0F : mean.real(), left_out ? 0.0F : sign * mean.imag()};
      weights[c] = left_out ? 0.0F : parts.sum;
    }
    if (all_good) dropped.flagged += flagged;
    return all_good;
  }

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
