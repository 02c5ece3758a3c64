#pragma once

#include <cstdint>

#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/sparse_coding/convolutional_coder.h>

namespace mpol {

/// Options of a DictionaryLearner.
struct DictionaryLearningOptions {
  /// Chooses 100 iterations for the coefficients of an image, and a rho that is doubled or halved every 10 of them.
  /// @throws ValueError unless lambda is finite and above 0
  explicit DictionaryLearningOptions(double lambda);

  ConvolutionalCodingOptions coding;  ///< of each image; no mask
  /// The k-th image, from 0, moves the filters by a/(k + b) against their gradient; a and b > 0.
  double step_numerator = 10, step_offset = 5;
  /// What is done with the mean of a filter after a step.
  enum class Mean {
    keep,               ///< nothing
    remove              ///< it is taken away
  } mean = Mean::keep;  ///< of each filter
};

/// Online learning of a convolutional dictionary: images come one after the other; each is coded with the filters of the moment,
/// which then take a gradient step of |D x - s|^2 / 2, are cut to their size again, and are scaled to unit length.
/// Source: Liu, Garcia-Cardona, Wohlberg & Yin 2018; OnlineConvBPDNDictLearn of SPORCO, with its defaults.
class DictionaryLearner {
 public:
  /// @param filters  to begin with, (M, h, w), or (M, C, h, w) for channels that share maps
  /// @throws ValueError for options out of range
  DictionaryLearner(const Tensor& filters, DictionaryLearningOptions options);

  /// Learns from an image, or from several at once.
  /// @param image  (…, C, rows, columns); sizes may differ from one to the next
  /// @return       how its coding ended
  SolverReport learn(const Tensor& image);
  /// The filters, of unit length each, in the shape that they were given.
  const Tensor& filters() const { return filters_; }
  std::int64_t images_seen() const { return images_; }  ///< k of the next image

  /// What goes on from a saved state makes the same filters to the last bit.
  NamedTensors state() const;
  /// @throws FileError when shapes do not match
  void load_state(const NamedTensors& state);

 private:
  Tensor projected(const Tensor& filters) const;
  DictionaryLearningOptions options_;
  Tensor filters_;
  std::int64_t images_ = 0;
};

}  // namespace mpol
