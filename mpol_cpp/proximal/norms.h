#pragma once

#include <cstdint>
#include <optional>

#include <mpol_cpp/proximal/proximal_map.h>

namespace mpol {

/// sum_i w_i |x_i|; its map moves each value by t w_i towards 0.
class L1Norm : public ProximalMap {
 public:
  /// @throws ValueError when the weight is below 0 or not finite
  explicit L1Norm(double weight = 1);
  /// @param weights  >= 0, broadcastable to x, so that every value, filter or problem may have its own
  explicit L1Norm(Tensor weights);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override;
  Tensor apply(const Tensor& q, const Tensor& step) override;
  std::optional<Tensor> dual_norm(const Tensor& y) const override;
  /// The weight, if all values have the same.
  std::optional<double> common_weight() const;

 private:
  Tensor weights_;
};

/// w |x|, the Euclidean length of each problem: its map shortens a problem by t w, or to 0.
class L2Norm : public ProximalMap {
 public:
  /// @throws ValueError when the weight is below 0 or not finite
  explicit L2Norm(double weight = 1);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override;
  Tensor apply(const Tensor& q, const Tensor& step) override;
  std::optional<Tensor> dual_norm(const Tensor& y) const override;

 private:
  double weight_;
};

/// sum_i w_i x_i^2 / 2; its map divides by 1 + t w_i.
class SquaredL2Norm : public ProximalMap {
 public:
  /// @throws ValueError when the weight is below 0 or not finite
  explicit SquaredL2Norm(double weight = 1);
  /// @param weights  >= 0, broadcastable to x
  explicit SquaredL2Norm(Tensor weights);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override;
  Tensor apply(const Tensor& q, const Tensor& step) override;

 private:
  Tensor weights_;
};

/// a |x|_1 + b sum |x|_2 over vectors along one dimension: L2,1 across the channels of each pixel, joint sparsity. Its map
/// is that of a |x|_1, then that of the vectors.
/// Source: Wohlberg 2014 (the two maps of the sum one after the other).
class JointSparsity : public ProximalMap {
 public:
  /// @param dim  that vectors run along, from -1 back: -3 are channels
  /// @throws ValueError when a weight is below 0 or not finite, or dim is not negative
  JointSparsity(double l1_weight, double l21_weight, std::int64_t dim = -3);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override;
  Tensor apply(const Tensor& q, const Tensor& step) override;
  std::optional<Tensor> dual_norm(const Tensor& y) const override;

 private:
  double l1_, l21_;
  std::int64_t dim_;
};

/// What the differences of an image (…, 2 C, rows, columns) are joined to before their lengths are added.
enum class Variation {
  isotropic,        ///< both differences of a pixel
  anisotropic,      ///< nothing
  across_channels,  ///< both differences of a pixel in all channels: vector total variation
};

/// w sum of the lengths of differences, as ImageDifferences makes them: the total variation of the image, as a function of them.
class DifferenceNorm : public ProximalMap {
 public:
  /// @param weights  >= 0, broadcastable to the image
  DifferenceNorm(Tensor weights, Variation variation = Variation::isotropic);
  /// One weight for all pixels. @throws ValueError when it is below 0 or not finite
  explicit DifferenceNorm(double weight, Variation variation = Variation::isotropic);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override;
  Tensor apply(const Tensor& q, const Tensor& step) override;

  /// Lengths of the vectors, broadcastable to (…, 2, C, rows, columns).
  static Tensor lengths(const Tensor& differences, Variation variation);

 private:
  Tensor weights_;
  Variation variation_;
};

}  // namespace mpol
