#include <mpol_cpp/analysis/radial_fit/profile_posterior.h>

#include <algorithm>

#include <ATen/ops/cholesky_inverse.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_inv.h>

#include <mpol_cpp/analysis/radial_fit/few_threads.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

ProfilePosterior::ProfilePosterior(const FourierBesselSeries& series, const Tensor& matrix, const Tensor& vector) {
  const FewThreads few(series.count());
  inverse_ = at::linalg_inv(series.transform(series.frequencies()));
  matrix_ = inverse_.mT().matmul(matrix).matmul(inverse_);
  vector_ = inverse_.mT().mv(vector);
}

double ProfilePosterior::most_power() const {
  constexpr double most_condition = 1e12;
  return most_condition / std::max(matrix_.diagonal().sum().item<double>(), 1e-300);
}

ProfilePosterior::Spectrum ProfilePosterior::at(const Tensor& power) const {
  const FewThreads few(power.size(0));
  const auto scale = power.sqrt();
  auto scaled = matrix_ * scale * scale.unsqueeze(1);
  scaled = (scaled + scaled.mT()) / 2;
  scaled.diagonal().add_(1);
  const auto [factor, failed_at] = at::linalg_cholesky_ex(scaled);
  if (failed_at.item<int>() != 0) {
    throw DataError(
        fmt::format("the profile's powers of up to {:.3g} Jy^2 are beyond what float64 can solve for with these weights: take a "
                    "larger radius, or look at the data's units and weights",
                    power.max().item<double>()));
  }
  const auto covariance = at::cholesky_inverse(factor) * scale * scale.unsqueeze(1);
  return {covariance.mv(vector_), covariance};
}

}  // namespace mpol
