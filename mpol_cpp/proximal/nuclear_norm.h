#pragma once

#include <optional>

#include <mpol_cpp/proximal/proximal_map.h>

namespace mpol {

/// w times the sum of the singular values of the matrix (channels, pixels) of each problem: few spectra make all channels. Its
/// map moves the singular values by t w towards 0.
///
/// Of a large matrix of which few singular values remained in the last step, only those vectors are made, from the last step's,
/// and a Cholesky factorization proves that no other singular value is above the threshold; where one is, all vectors are made.
class NuclearNorm : public ProximalMap {
 public:
  /// @throws ValueError when the weight is below 0 or not finite
  explicit NuclearNorm(double weight = 1);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override;
  Tensor apply(const Tensor& q, const Tensor& step) override;
  std::optional<Tensor> dual_norm(const Tensor& y) const override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  double weight_;
  Tensor block_;  // orthonormal columns near the singular vectors that remained, and some more; undefined: too many, or none yet
};

}  // namespace mpol
