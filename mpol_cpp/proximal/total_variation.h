#pragma once

#include <cstdint>

#include <mpol_cpp/proximal/linear_map.h>
#include <mpol_cpp/proximal/norms.h>

namespace mpol {

/// Options of a TotalVariation.
struct TotalVariationOptions {
  double weight = 1;                           ///< k, >= 0
  Variation variation = Variation::isotropic;  ///< how the lengths of differences are taken
  Boundary boundary = Boundary::free;          ///< of ImageDifferences
  double l1_weight = 0;                        ///< a, >= 0
  /// The signs that are allowed.
  enum class Sign {
    any,                           ///< both
    nonnegative                    ///< x >= 0
  } sign = Sign::any;              ///< of x
  double tolerance = 1e-6;         ///< of the duality gap, as a part of the terms' value, >= 0; 0 takes all passes
  std::int64_t most_passes = 200;  ///< dual steps of one call, >= 1
};

/// k TV(x) + a |x|_1, x >= 0 if asked for, with all three by one dual image p of the differences D:
///
///   x(p) = prox_t(a|.|_1 + sign)(q - t k D* p),   p' = v + D x(v) / (8 t k), each vector longer than 1 cut to length 1
///   v'   = p' + (s-1)/s' (p' - p)
///
/// until the gap  t k (TV(x) - <p, D x>)  is small, which bounds |x - prox|^2 / 2. Every call begins with the dual image that the
/// last one left where shapes agree (a warm start): near the end of a fit a few passes do.
/// Source: Beck & Teboulle 2009.
class TotalVariation : public ProximalMap {
 public:
  /// @throws ValueError for options out of range
  explicit TotalVariation(const TotalVariationOptions& options = {});
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override;
  Tensor apply(const Tensor& q, const Tensor& step) override;

  /// Dual steps that the last call took.
  std::int64_t passes() const { return passes_; }
  /// Begins anew: the next call does not depend on those before.
  void forget() { dual_ = Tensor(); }
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;

 private:
  Tensor primal(const Tensor& q, const Tensor& step, const Tensor& dual) const;
  Tensor cut(const Tensor& dual) const;

  TotalVariationOptions options_;
  ImageDifferences differences_;
  DifferenceNorm norm_;
  Tensor dual_;
  std::int64_t passes_ = 0;
};

}  // namespace mpol
