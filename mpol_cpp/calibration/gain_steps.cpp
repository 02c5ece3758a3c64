#include <mpol_cpp/calibration/gain_steps.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_solve.h>

namespace mpol::detail {
namespace {

constexpr std::int64_t numbers_of_gain = 4, most_rounds = 4;

}  // namespace

Tensor numbers_of(const std::vector<BlockGain>& gains) {
  auto numbers = at::empty({numbers_of_gain * static_cast<std::int64_t>(gains.size())}, torch::kFloat64);
  auto* at = numbers.mutable_data_ptr<double>();
  for (const auto& gain : gains) {
    for (const double number : {gain.east, gain.north, std::log(gain.amplitude), std::log(gain.weight_scale)}) *at++ = number;
  }
  return numbers;
}

std::vector<BlockGain> gains_of(const Tensor& numbers) {
  const auto own = numbers.contiguous();
  const auto* at = own.const_data_ptr<double>();
  std::vector<BlockGain> gains;
  for (std::int64_t i = 0; i < own.numel(); i += numbers_of_gain, at += numbers_of_gain)
    gains.push_back({at[0], at[1], std::exp(at[2]), std::exp(at[3])});
  return gains;
}

Tensor errors_of(const std::vector<FittedGain>& fits) {
  auto errors = at::empty({numbers_of_gain * static_cast<std::int64_t>(fits.size())}, torch::kFloat64);
  auto* at = errors.mutable_data_ptr<double>();
  for (const auto& [gain, error, chi_squared, samples, shared, significance] : fits) {
    for (const double number :
         {error.east, error.north, error.amplitude / gain.amplitude, error.weight_scale / gain.weight_scale}) {
      *at++ = number > 0 && std::isfinite(number) ? number : 1;
    }
  }
  return errors;
}

void GainSteps::add(const Tensor& x, const Tensor& g) {
  const auto appended = [](const Tensor& all, const Tensor& row) {
    const auto joined = all.defined() ? at::cat({all, row.unsqueeze(0)}) : row.unsqueeze(0).clone();
    const auto rows = std::min(joined.size(0), most_rounds);
    return joined.slice(0, joined.size(0) - rows).contiguous();
  };
  from = appended(from, x);
  to = appended(to, g);
}

Tensor GainSteps::next(const Tensor& errors) const {
  constexpr double too_far = 50, longest = 5, damping = 1e-8;
  const auto last = to[-1];
  const auto residuals = (to - from) / errors;  // (rounds, numbers)
  if (to.size(0) < 3 || residuals[-1].abs().max().item<double>() > too_far) return last;
  const auto differences = residuals.diff(1, 0);
  const auto gram = differences.matmul(differences.t());
  const auto regular = gram + at::eye(gram.size(0), gram.options()) * (damping * gram.diagonal().mean() + 1e-300);
  const auto factors = at::linalg_solve(regular, differences.matmul(residuals[-1]));
  auto correction = (to / errors).diff(1, 0).t().matmul(factors);
  const double limit = longest * residuals[-1].norm().item<double>(), length = correction.norm().item<double>();
  if (!std::isfinite(length)) return last;
  if (length > limit) correction = correction * (limit / length);
  return last - correction * errors;
}

}  // namespace mpol::detail
