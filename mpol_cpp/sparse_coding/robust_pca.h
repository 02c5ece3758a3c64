#pragma once

#include <memory>

#include <mpol_cpp/solvers/admm.h>

namespace mpol {

/// Options of robust_pca().
struct RobustPcaOptions : AdmmOptions {
  /// Chooses rho = 2 lambda + 0.1 and a balance in every iteration.
  /// @throws ValueError unless lambda is finite and above 0
  explicit RobustPcaOptions(double lambda);
  /// lambda = 1/sqrt(nrows), for a matrix of so many rows.
  static RobustPcaOptions for_rows(std::int64_t nrows);

  double l1_weight;  ///< lambda
};

/// Robust principal components:  min |x|_* + lambda |y|_1  where  x + y = matrix. The solver's solution() is the part x of low
/// rank, (…, nrows, 1, ncolumns), and low_rank() and sparse_part() below give both in the matrix's shape.
/// @param matrix  (…, nrows, ncolumns), any floating dtype and device
/// @throws ShapeError for anything else
/// Source: Candes, Li, Ma & Wright 2011; RobustPCA of SPORCO (Wohlberg 2017), with its defaults.
std::unique_ptr<Admm> robust_pca(const Tensor& matrix, const RobustPcaOptions& options);
Tensor low_rank(const Admm& solver);     ///< x, (…, nrows, ncolumns)
Tensor sparse_part(const Admm& solver);  ///< y, (…, nrows, ncolumns), exactly sparse

}  // namespace mpol
