#include <mpol_cpp/solvers/objective_model.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr double largest_distance_of_solution = 1e-4, largest_distance_of_preconditioner = 0.3;
constexpr double tiny = 1e-300;  // of sums that divide

/// An image of no pattern, the same in every run.
Tensor scattered(const Tensor& like) {
  const auto numbers = at::arange(like.numel(), like.options().dtype(torch::kFloat64));
  return numbers.square().mul(0.37).sin().view(like.sizes()).to(like.scalar_type());
}

}  // namespace

ObjectiveModel::ObjectiveModel(ConvexObjective& function, Tensor images, Tensor gradient, Options options)
    : function_(function), images_(std::move(images)), gradient_(std::move(gradient)), options_(options) {
  if (!(options_.tolerance > 0) || options_.most_iterations < 1) {
    throw ValueError(fmt::format("conjugate gradients to {} in {} iterations: the tolerance must be above 0, and one the least",
                                 options_.tolerance, options_.most_iterations));
  }
  const torch::NoGradGuard no_grad;
  function_.prepare_bend();
  const auto middle = images_.size(-1) / 2;
  auto point = at::zeros_like(images_);
  point.select(-1, middle).select(-1, middle).fill_(1);
  const auto response = function_.bend(point).roll({-middle, -middle}, {-2, -1});
  diagonal_ = at::real(at::fft_rfft2(response)).clamp_min(0).contiguous();
  curvature_ = diagonal_.max().item<double>();
  const auto noise = scattered(images_), bent = function_.bend(noise);
  const auto diagonally = at::fft_irfft2(at::fft_rfft2(noise) * diagonal_, noise.sizes().slice(2));
  distance_to_diagonal_ = (bent - diagonally).norm().item<double>() / std::max(bent.norm().item<double>(), tiny);
}

Tensor ObjectiveModel::solved(const Tensor& image, const Tensor& rho) const {
  return at::fft_irfft2(at::fft_rfft2(image).div_(diagonal_ + rho), image.sizes().slice(2));
}

Tensor ObjectiveModel::minimize(const Tensor& v, const Tensor& rho, const Tensor&) {
  auto residual = (v - images_).mul_(rho).sub_(gradient_);
  if (distance_to_diagonal_ <= largest_distance_of_solution) return solved(residual, rho).add_(images_);
  return conjugate_gradients(std::move(residual), rho).add_(images_);
}

Tensor ObjectiveModel::conjugate_gradients(Tensor residual, const Tensor& rho) {
  const bool preconditions = distance_to_diagonal_ <= largest_distance_of_preconditioner;
  auto solution = at::zeros_like(residual);
  Tensor direction, before, end;  // and <residual, preconditioned residual> that it was made at
  for (std::int64_t k = 0; k < options_.most_iterations; ++k) {
    // Lengths in the norm of the preconditioner, which weighs most what H hardly sees: an error of the residual there is one of
    // x a thousand times as large.
    const auto slope = preconditions ? solved(residual, rho) : residual;
    auto along = problem_sums(residual * slope);
    if (k == 0) end = along * (options_.tolerance * options_.tolerance);
    else if ((along <= end).all().item<bool>()) break;
    direction = k == 0 ? slope.clone() : slope + direction * as_factor(along / before.clamp_min(tiny), slope);
    before = std::move(along);
    const auto product = function_.bend(direction).add_(direction * rho);
    // A problem that has come to its end stands still while others go on: what is left of its residual is rounding, along which
    // the curvature may be 0 or less.
    const auto curvature = problem_sums(direction * product);
    const auto length = at::where((before > end).logical_and(curvature > 0), before / curvature, 0.0);
    if (!(length > 0).any().item<bool>()) break;
    const auto step = as_factor(length, product);
    solution.add_(direction * step);
    residual.sub_(product * step);
  }
  return solution;
}

Tensor ObjectiveModel::value(const Tensor& x) {
  auto slope = at::empty_like(x);
  auto values = function_.evaluate(x, slope);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = function_.losses()[i] - values[i];
  return at::tensor(values, torch::kFloat64).to(x.device());
}

}  // namespace mpol
