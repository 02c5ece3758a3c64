#include <mpol_cpp/analysis/sources/source_fluxes.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::int64_t flux_block = 1 << 14;  // samples
/// Least eigenvalue of the normal matrix with ones on its diagonal: below it rounding decides which source has the flux.
constexpr double least_difference = 1e-9;

/// Visibilities of all sources at 1 Jy, (nsources, 2 n) float64: real and imaginary parts.
Tensor unit_visibilities(const std::vector<DiscModel>& sources, const Tensor& u, const Tensor& v) {
  std::vector<Tensor> all;
  for (auto source : sources) {
    source.flux = 1;
    all.push_back(at::view_as_real(disc_visibilities(source, u, v)).flatten());
  }
  return at::stack(all);
}

/// The normal equations of each channel.
struct NormalEquations {
  NormalEquations(std::int64_t nchan, std::int64_t count)
      : matrix(at::zeros({nchan, count, count}, torch::kFloat64)),
        right(at::zeros({nchan, count}, torch::kFloat64)),
        power(at::zeros({nchan}, torch::kFloat64)) {}

  void add(std::int64_t channel, const Tensor& models, const VisibilityBlock& block) {
    const auto weights = block.weights.repeat_interleave(2);
    const auto data = at::view_as_real(block.data.resolve_conj()).flatten();
    const auto weighted = models * weights;
    matrix[channel] += at::matmul(weighted, models.t());
    right[channel] += at::matmul(weighted, data);
    power[channel] += (weights * data.square()).sum();
  }

  Tensor matrix;  ///< (nchan, nsources, nsources): sum w Re(conj(T_s) T_t)
  Tensor right;   ///< (nchan, nsources): sum w Re(conj(T_s) V)
  Tensor power;   ///< (nchan): sum w |V|^2
};

NormalEquations normal_equations(const Visibilities& visibilities, const std::vector<DiscModel>& sources) {
  const auto nchan = visibilities.nchan(), nvis = visibilities.nvis();
  const bool shared = visibilities.baselines().shared();
  NormalEquations sums(nchan, static_cast<std::int64_t>(sources.size()));
  for (std::int64_t begin = 0; begin < nvis; begin += flux_block) {
    Tensor models;
    for (std::int64_t c = 0; c < nchan; ++c) {
      const auto block = visibilities.block(c, begin, std::min(nvis, begin + flux_block));
      if (!models.defined() || !shared) models = unit_visibilities(sources, block.u.cpu(), block.v.cpu());
      sums.add(c, models, {block.u, block.v, block.data.cpu(), block.weights.cpu()});
    }
  }
  return sums;
}

/// @throws DataError where the matrix of a channel is singular but for rounding
void check_different(const Tensor& matrix) {
  const auto root = matrix.diagonal(0, 1, 2).sqrt();
  if (!(root > 0).all().item<bool>() || !root.isfinite().all().item<bool>())
    throw DataError("a source has no visibilities at the samples: it is resolved out; leave it out, or make it smaller");
  const auto scaled = matrix / root.unsqueeze(2) / root.unsqueeze(1);
  const auto least = std::get<0>(at::linalg_eigh(scaled)).amin().item<double>();
  if (least > least_difference) return;
  throw DataError(
      fmt::format("the fluxes of the sources cannot be told apart at these baselines: the least eigenvalue of their normalized "
                  "products is {:.2g}, and must be above {:g}; leave out one of those that lie at one place",
                  least, least_difference));
}

}  // namespace

SourceFluxes source_fluxes(const Visibilities& visibilities, const std::vector<DiscModel>& sources) {
  if (sources.empty()) throw ValueError("fluxes of no sources: name at least one");
  const torch::NoGradGuard no_grad;
  const auto [matrix, right, power] = normal_equations(visibilities, sources);
  check_different(matrix);
  auto covariance = at::linalg_inv(matrix);
  auto flux = at::matmul(covariance, right.unsqueeze(2)).squeeze(2);
  auto error = covariance.diagonal(0, 1, 2).sqrt();
  auto chi_squared = (power - (right * flux).sum(1)).clamp_min(0);
  return {std::move(flux), std::move(error), std::move(covariance), std::move(chi_squared)};
}

}  // namespace mpol
