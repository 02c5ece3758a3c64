#include <cmath>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/solvers/admm.h>
#include <mpol_cpp/solvers/conjugate_gradient.h>

namespace mpol {

LinearizedModel::LinearizedModel(std::shared_ptr<ProximalMap> f, std::shared_ptr<const LinearMap> map, double squared_norm)
    : f_(std::move(f)), map_(std::move(map)), squared_norm_(squared_norm) {
  if (!(squared_norm > 0) || !std::isfinite(squared_norm)) {
    throw ValueError(
        fmt::format("linearized admm: the squared norm of the map is {}; it must be finite and above 0", squared_norm));
  }
}

Tensor LinearizedModel::minimize(const Tensor& v, const Tensor& rho, const Tensor& x) {
  return f_->apply(x - map_->adjoint(map_->apply(x) - v) / squared_norm_, (rho * squared_norm_).reciprocal());
}

LeastSquaresModel::LeastSquaresModel(std::shared_ptr<const LinearMap> measurement, Tensor data, Solve solve, Tensor weights,
                                     std::shared_ptr<const LinearMap> map)
    : measurement_(std::move(measurement)),
      map_(map ? std::move(map) : std::make_shared<const IdentityMap>()),
      data_(std::move(data)),
      weights_(std::move(weights)),
      solve_(solve) {
  gathered_ = measurement_->adjoint(weighted(data_));
}

Tensor LeastSquaresModel::minimize(const Tensor& v, const Tensor& rho, const Tensor& x) {
  ConjugateGradientOptions options;
  options.tolerance = solve_.tolerance;
  options.most_iterations = solve_.most_iterations;
  const auto normal = [&](const Tensor& p) {
    return measurement_->adjoint(weighted(measurement_->apply(p))) + rho * map_->adjoint(map_->apply(p));
  };
  ConjugateGradient solver(normal, gathered_ + rho * map_->adjoint(v), x, options);
  solver.solve();
  return solver.solution();
}

Tensor LeastSquaresModel::value(const Tensor& x) {
  const auto residual = measurement_->apply(x) - data_;
  return problem_sums(residual * weighted(residual)) / 2;
}

}  // namespace mpol
