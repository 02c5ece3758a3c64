#include <mpol_cpp/sparse_coding/robust_pca.h>

#include <cmath>

#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/proximal/norms.h>
#include <mpol_cpp/proximal/nuclear_norm.h>

namespace mpol {

RobustPcaOptions::RobustPcaOptions(double lambda) : l1_weight(lambda) {
  if (!(lambda > 0) || !std::isfinite(lambda))
    throw ValueError(fmt::format("robust pca: lambda is {}; it must be finite and above 0", lambda));
  rho = 2 * lambda + 0.1;
  balance.period = 1;
}

RobustPcaOptions RobustPcaOptions::for_rows(std::int64_t nrows) {
  return RobustPcaOptions(1 / std::sqrt(static_cast<double>(nrows)));
}

std::unique_ptr<Admm> robust_pca(const Tensor& matrix, const RobustPcaOptions& options) {
  if (matrix.dim() < 2) throw ShapeError(fmt::format("{} is no matrix: give (…, rows, columns)", matrix.sizes().vec()));
  const torch::NoGradGuard no_grad;
  const auto rows = matrix.unsqueeze(-2);
  // x - z = matrix with z = -y.
  return std::make_unique<Admm>(std::make_shared<ProximalModel>(std::make_shared<NuclearNorm>()),
                                std::make_shared<L1Norm>(options.l1_weight), at::zeros_like(rows), options, Tensor(), rows);
}

Tensor low_rank(const Admm& solver) { return solver.solution().squeeze(-2); }
Tensor sparse_part(const Admm& solver) { return -solver.auxiliary().squeeze(-2); }

}  // namespace mpol
