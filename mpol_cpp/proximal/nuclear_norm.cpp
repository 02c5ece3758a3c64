#include <mpol_cpp/proximal/nuclear_norm.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mm.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::int64_t least_size = 64;       // of a matrix whose singular vectors are made in part
constexpr std::int64_t spare_columns = 8;     // of a block, beyond the vectors that remain
constexpr std::int64_t largest_fraction = 4;  // a block has at most the matrix' size by this
constexpr int most_filters = 4;               // in a step, before all vectors are made
constexpr double most_degree = 16;            // of a filter

/// Rayleigh and Ritz: the block turned so that its columns are nearest to eigenvectors, and the matrix times it.
Tensor turn(const Tensor& matrix, Tensor& block, Tensor& product) {
  product = matrix.mm(block);
  const auto [values, turns] = at::linalg_eigh(block.mT().mm(product));
  block = block.mm(turns);
  product = product.mm(turns);
  return values;
}

/// What a Chebyshev polynomial of the matrix makes of the block: components of eigenvalues above the bound grow beside the rest.
Tensor filtered(const Tensor& matrix, const Tensor& block, const Tensor& product, double bound, int degree) {
  const double half = bound / 2;
  auto last = block, own = (product - half * block).div_(half);
  for (int i = 1; i < degree; ++i) {
    auto next = matrix.mm(own).sub_(own, half).mul_(2 / half).sub_(last);
    last = std::move(own);
    own = std::move(next);
  }
  // The largest come first, so that the others become orthogonal to them, and not they to the others' rounding.
  return std::get<0>(at::linalg_qr(own.flip(-1))).flip(-1);
}

/// Whether every eigenvalue of the matrix but those of the columns is below the limit.
bool others_are_below(const Tensor& matrix, const Tensor& vectors, const Tensor& values, double limit) {
  auto left = vectors.mul(values).mm(vectors.mT()).sub_(matrix);
  left.diagonal().add_(limit);
  return std::get<1>(at::linalg_cholesky_ex(left, /*upper=*/false, /*check_errors=*/false)).item<std::int32_t>() == 0;
}

/// Makes the block's columns converge to the eigenvectors of eigenvalues above the limit.
/// @param accuracy  of the product that is made of them, relative
/// @return          how many there are; nothing where they did not converge, or others than the block's are above the limit
std::optional<std::int64_t> converge(const Tensor& matrix, double limit, double accuracy, Tensor& block, Tensor& values) {
  for (int filters = 0; filters <= most_filters; ++filters) {
    Tensor product;
    values = turn(matrix, block, product);
    const auto own = on_host(values);
    const auto left = on_host(at::linalg_vector_norm(product - block * values, 2, at::IntArrayRef{0}));
    const double bound = std::max(own.front(), limit / 10), largest = own.back();
    if (!(own.front() < limit)) return std::nullopt;  // others may be above it as well
    const auto first = static_cast<std::size_t>(std::upper_bound(own.begin(), own.end(), limit) - own.begin());
    double error = 0;
    for (auto i = first; i < own.size(); ++i) error = std::max(error, (1 - std::sqrt(limit / own[i])) * left[i] / largest);
    if (error <= accuracy) {
      const auto wanted = static_cast<std::int64_t>(own.size() - first), columns = block.size(1);
      const auto part = block.narrow(1, columns - wanted, wanted);
      if (!others_are_below(matrix, part, values.narrow(0, columns - wanted, wanted), limit)) return std::nullopt;
      return wanted;
    }
    if (filters == most_filters) break;
    const double growth = std::acosh(2 * own[first] / bound - 1);
    const auto degree = std::clamp(std::ceil(std::acosh(2 * error / accuracy) / growth), 2.0, most_degree);
    block = filtered(matrix, block, product, bound, static_cast<int>(degree));
  }
  return std::nullopt;
}

}  // namespace

NuclearNorm::NuclearNorm(double weight) : weight_(weight) {
  if (!(weight >= 0) || !std::isfinite(weight))
    throw ValueError(fmt::format("a weight of {} is none: give a finite one, 0 or more", weight));
}

Tensor NuclearNorm::value(const Tensor& x) const {
  return weight_ * at::linalg_svdvals(x.flatten(-2, -1)).sum(-1, /*keepdim=*/false, torch::kFloat64);
}

Tensor NuclearNorm::apply(const Tensor& q, const Tensor& step) {
  // By the eigenvectors of the smaller of A A^T and A^T A, in float64: with s^2 of each, A loses the part min(1, t/s) along it.
  // Several times faster than singular vectors; where s is above t the square has digits enough.
  const auto matrix = q.flatten(-2, -1).to(torch::kFloat64);
  const bool is_wide = matrix.size(-2) <= matrix.size(-1);
  const auto gram = is_wide ? matrix.matmul(matrix.mT()) : matrix.mT().matmul(matrix);
  auto threshold = (weight_ * step).to(torch::kFloat64);  // (…, 1, 1, 1) where it is not one for all
  if (threshold.dim() >= 3) threshold = threshold.flatten(-3, -1);
  const auto like_q = [&](const Tensor& vectors, const Tensor& kept) {
    const auto weighted = vectors.mul(kept.unsqueeze(-2));
    const auto x = is_wide ? weighted.matmul(vectors.mT().matmul(matrix)) : matrix.matmul(weighted).matmul(vectors.mT());
    return x.to(q.scalar_type()).view_as(q);
  };
  const auto n = gram.size(-1);
  const bool is_large = gram.numel() == n * n && n >= least_size && threshold.numel() == 1;
  if (is_large && block_.defined() && block_.size(0) == n) {
    const auto own = gram.view({n, n});
    const double accuracy = q.scalar_type() == torch::kFloat64 ? 5e-13 : 1e-9;
    auto block = block_.to(own);
    Tensor squares;
    if (const auto wanted = converge(own, std::pow(threshold.item<double>(), 2), accuracy, block, squares)) {
      const auto columns = block.size(1), kept = std::min(columns, *wanted + spare_columns);
      block_ = block.narrow(1, columns - kept, kept).clone();
      return like_q(block.narrow(1, columns - *wanted, *wanted),
                    shortening(squares.narrow(0, columns - *wanted, *wanted).sqrt(), threshold));
    }
    block_ = Tensor();
  }
  const auto [squares, vectors] = at::linalg_eigh(gram);
  const auto kept = shortening(squares.clamp_min(0).sqrt(), threshold);
  if (is_large) {
    const auto columns = kept.count_nonzero().item<std::int64_t>() + spare_columns;
    if (columns <= n / largest_fraction) block_ = vectors.view({n, n}).narrow(1, n - columns, columns).clone();
  }
  return like_q(vectors, kept);
}

std::optional<Tensor> NuclearNorm::dual_norm(const Tensor& y) const {
  return at::linalg_svdvals(y.flatten(-2, -1)).amax(-1).to(torch::kFloat64) / weight_;
}

NamedTensors NuclearNorm::state() const {
  if (!block_.defined()) return {};
  return {{"block", block_.clone()}};
}

void NuclearNorm::load_state(const NamedTensors& state) {
  const auto found = state.find("block");
  block_ = found == state.end() ? Tensor() : found->second.clone();
}

}  // namespace mpol
