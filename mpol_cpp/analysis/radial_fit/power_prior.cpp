#include <mpol_cpp/analysis/radial_fit/power_prior.h>

#include <array>
#include <cmath>

#include <ATen/ops/cholesky_solve.h>
#include <ATen/ops/zeros.h>

namespace mpol {

Tensor smoothness_matrix(const Tensor& frequencies, double smoothness) {
  const auto count = frequencies.size(0);
  const auto logarithms = frequencies.to(torch::kFloat64).log().contiguous();
  const auto* x = logarithms.const_data_ptr<double>();
  auto matrix = at::zeros({count, count}, torch::kFloat64);
  auto* element = matrix.mutable_data_ptr<double>();
  for (std::int64_t k = 1; k + 1 < count; ++k) {
    // The second derivative at x_k of what runs through three points, over the stretch that is nearest to x_k.
    const double before = x[k] - x[k - 1], after = x[k + 1] - x[k], stretch = (before + after) / 2;
    const std::array<double, 3> second = {1 / (before * stretch), -(1 / before + 1 / after) / stretch, 1 / (after * stretch)};
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        element[(k - 1 + i) * count + k - 1 + j] +=
            smoothness * stretch * second[static_cast<std::size_t>(i)] * second[static_cast<std::size_t>(j)];
      }
    }
  }
  return matrix;
}

Tensor next_power(const Tensor& power, const Tensor& expected, const Tensor& factor, const PowerPrior& prior) {
  constexpr double most_upwards = 3;  // far below the solution the right side is huge
  const auto slope = ((prior.least_power + expected / 2) / power - (prior.alpha - 0.5)).clamp_max(most_upwards);
  return at::cholesky_solve((power.log() + slope).unsqueeze(1), factor).squeeze(1).exp();
}

}  // namespace mpol
