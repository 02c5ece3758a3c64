#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/proximal/problem_values.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol {

/// A convex function h of (…, channels, rows, columns) that may be infinite, known by its values and its proximal map
///
///   prox(q, t) = argmin_x |x - q|^2 / 2 + t h(x)
///
/// of each problem by itself. Real floating dtypes, any device; what comes out is like what goes in.
class ProximalMap {
 public:
  virtual ~ProximalMap() = default;

  /// h of each problem, (…) float64. Of a set it is 0, in the set and outside: solvers end in the set only up to rounding.
  virtual Tensor value(const Tensor& x) const = 0;
  /// prox(q, t). @param step  t > 0, broadcastable to q: of any shape that as_factor gives
  virtual Tensor apply(const Tensor& q, const Tensor& step) = 0;
  /// prox(q, step), the same step for all problems.
  Tensor apply(const Tensor& q, double step) { return apply(q, as_factor(std::vector<double>{step}, q)); }

  /// The dual norm of y, (…) float64, where h is a norm: least s for which <x, y> <= s h(x) for all x. Nothing for another h.
  virtual std::optional<Tensor> dual_norm(const Tensor& /*y*/) const { return std::nullopt; }
  /// What later results depend on, besides what the map was made of: warm starts.
  virtual NamedTensors state() const { return {}; }
  virtual void load_state(const NamedTensors& /*state*/) {}  ///< takes up what state() gave
};

/// prox of h*, the conjugate, by Moreau's identity: q = prox_h(q, t) + t prox_h*(q/t, 1/t).
Tensor conjugate_proximal(ProximalMap& map, const Tensor& q, const Tensor& step);

/// h = 0: everything is allowed.
class NoProximal : public ProximalMap {
 public:
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return problem_sums(x) * 0; }
  Tensor apply(const Tensor& q, const Tensor& /*step*/) override { return q; }
};

/// Several maps, each of its own range of channels: h(x) = sum_i h_i(x_i), beside StackedMap.
class StackedProximal : public ProximalMap {
 public:
  /// @throws ValueError unless each map has its number of channels, > 0
  StackedProximal(std::vector<std::shared_ptr<ProximalMap>> maps, std::vector<std::int64_t> channels);
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override;
  Tensor apply(const Tensor& q, const Tensor& step) override;
  NamedTensors state() const override;
  void load_state(const NamedTensors& state) override;
  const std::vector<std::shared_ptr<ProximalMap>>& maps() const { return maps_; }  ///< in the order of the channels
  const std::vector<std::int64_t>& channels() const { return channels_; }          ///< of each map

 private:
  std::vector<std::shared_ptr<ProximalMap>> maps_;
  std::vector<std::int64_t> channels_;
};

/// h(x - center) for another map's h.
class ShiftedProximal : public ProximalMap {
 public:
  /// @param center  broadcastable to x, taken to its dtype and device
  ShiftedProximal(std::shared_ptr<ProximalMap> map, Tensor center) : map_(std::move(map)), center_(std::move(center)) {}
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return map_->value(x - center_.to(x)); }
  Tensor apply(const Tensor& q, const Tensor& step) override { return map_->apply(q - center_.to(q), step) + center_.to(q); }
  NamedTensors state() const override { return map_->state(); }
  void load_state(const NamedTensors& state) override { map_->load_state(state); }

 private:
  std::shared_ptr<ProximalMap> map_;
  Tensor center_;
};

/// Plug and play: a denoiser of one's own in the place of a proximal map. It is given q and the step, which is the variance of
/// the noise that it should take away. Solvers converge where it is firmly non-expansive; its h need not exist.
class UserProximal : public ProximalMap {
 public:
  /// Takes noise of variance `step` from q, whose shape and dtype stay.
  using Denoiser = std::function<Tensor(const Tensor& q, const Tensor& step)>;
  using Value = std::function<Tensor(const Tensor& x)>;  ///< of h, (…) float64
  /// @param value  of h, (…) float64; without it h counts as 0 in objectives
  explicit UserProximal(Denoiser denoiser, Value value = {}) : denoiser_(std::move(denoiser)), value_(std::move(value)) {}
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return value_ ? value_(x) : problem_sums(x) * 0; }
  /// @throws ShapeError when the denoiser gives another shape or dtype
  Tensor apply(const Tensor& q, const Tensor& step) override;

 private:
  Denoiser denoiser_;
  Value value_;
};

}  // namespace mpol
