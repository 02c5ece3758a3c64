#include <mpol_cpp/solvers/ball_constrained.h>

#include <cmath>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/proximal/sets.h>

namespace mpol {
namespace {

/// Values of each problem in one row, so that what has different shapes can be stacked: (…, n, 1, 1).
Tensor in_a_row(const Tensor& x) { return x.flatten(-3, -1).unsqueeze(-1).unsqueeze(-1); }

/// s A, in a row.
class ScaledRow : public LinearMap {
 public:
  ScaledRow(std::shared_ptr<const LinearMap> map, Tensor scales, at::IntArrayRef shape)
      : map_(std::move(map)), scales_(std::move(scales)), shape_(shape.vec()) {}
  Tensor apply(const Tensor& x) const override {
    const auto y = map_->apply(x);
    return in_a_row(y * as_factor(scales_, y));
  }
  Tensor adjoint(const Tensor& y) const override { return map_->adjoint((y * as_factor(scales_, y)).reshape(shape_)); }

 private:
  std::shared_ptr<const LinearMap> map_;
  Tensor scales_;
  std::vector<std::int64_t> shape_;
};

/// h(y / s) for the h of what was scaled by s and lies in a row.
class UnscaledRow : public ProximalMap {
 public:
  UnscaledRow(std::shared_ptr<ProximalMap> map, Tensor scales, at::IntArrayRef shape)
      : map_(std::move(map)), scales_(std::move(scales)), shape_(shape.vec()) {}
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return map_->value((x / as_factor(scales_, x)).reshape(shape_)); }
  Tensor apply(const Tensor& q, const Tensor& step) override {
    const auto scale = as_factor(scales_, q);
    return in_a_row(map_->apply((q / scale).reshape(shape_), step / scale.square())) * scale;
  }
  NamedTensors state() const override { return map_->state(); }
  void load_state(const NamedTensors& state) override { map_->load_state(state); }

 private:
  std::shared_ptr<ProximalMap> map_;
  Tensor scales_;
  std::vector<std::int64_t> shape_;
};

}  // namespace

double noise_radius(double count) {
  if (!(count > 0)) throw ValueError("there is no noise in no data: give a count above 0");
  return std::sqrt(count + 2 * std::sqrt(2 * count));
}

std::unique_ptr<PrimalDual> ball_constrained(const BallConstrained& problem, const Tensor& start, PrimalDualOptions options) {
  if (!problem.measurement || !problem.data.defined() || !problem.radii.defined()) {
    throw ValueError("a fit within a ball needs a measurement, its data and a radius: see noise_radius");
  }
  if (static_cast<bool>(problem.analysis) != static_cast<bool>(problem.simplicity)) {
    throw ValueError("a fit within a ball needs both an analysis map and what is simple in it, or neither");
  }
  const torch::NoGradGuard no_grad;
  std::vector<std::shared_ptr<const LinearMap>> maps;
  std::vector<std::shared_ptr<ProximalMap>> simple;
  std::vector<std::int64_t> channels;
  const auto add = [&](const std::shared_ptr<const LinearMap>& map, std::shared_ptr<ProximalMap> h) {
    const auto scales = squared_norm(*map, start).rsqrt();
    const auto result = map->apply(start);
    maps.push_back(std::make_shared<ScaledRow>(map, scales, result.sizes()));
    simple.push_back(std::make_shared<UnscaledRow>(std::move(h), scales, result.sizes()));
    channels.push_back(result.size(-3) * result.size(-2) * result.size(-1));
  };
  add(problem.measurement, std::make_shared<L2Ball>(problem.radii, problem.data));
  if (problem.analysis) add(problem.analysis, problem.simplicity);
  const auto allowed = problem.allowed ? problem.allowed : std::make_shared<NoProximal>();
  return std::make_unique<PrimalDual>(nullptr, allowed, std::make_shared<StackedMap>(maps, channels),
                                      std::make_shared<StackedProximal>(simple, channels), start, std::move(options));
}

}  // namespace mpol
