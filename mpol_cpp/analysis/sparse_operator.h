#pragma once

#include <cstdint>
#include <vector>

#include <torch/custom_class.h>
#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// A real matrix of few entries, kept by rows and, for its adjoint, by columns.
///
/// On the CPU each sum is taken in float64, in the order of columns (rows for the adjoint), by our own threads: results do not
/// depend on their number, nor on how many vectors come together. On other devices LibTorch gathers and adds in float64; on CUDA
/// the order of a sum is fixed with set_deterministic only.
class SparseOperator {
 public:
  /// One number of the matrix and its place.
  struct Entry {
    std::int32_t row, column;  ///< from 0
    double value;              ///< A_ij
  };

  /// @param entries  in any order; those of one place add up
  /// @throws ValueError for an entry outside of rows x columns, or more than 2^31 - 1 of these
  SparseOperator(const std::vector<Entry>& entries, std::int64_t rows, std::int64_t columns);

  std::int64_t rows() const { return matrix_->by_row.lines; }        ///< length of what apply() gives
  std::int64_t columns() const { return matrix_->by_column.lines; }  ///< length of what apply() takes
  /// Numbers kept: those that were given, also where several have one place.
  std::int64_t entries() const { return matrix_->by_row.values.numel(); }

  /// sum_j A_ij x_j. Differentiable, any number of times.
  /// @param x  (…, columns), float32 or float64, any device
  /// @return   (…, rows), dtype and device of x
  /// @throws ShapeError for another shape or dtype
  Tensor apply(const Tensor& x) const;
  /// sum_i A_ij y_i: (…, rows) to (…, columns), as apply.
  Tensor apply_adjoint(const Tensor& y) const;
  /// sum_j A_ij (x_j - centre_i)^2; without a gradient.
  /// @param center  (…, rows), dtype and device of x
  Tensor spread(const Tensor& x, const Tensor& center) const;
  /// sum_j A_ij, (rows) float64 on the CPU.
  Tensor row_sums() const;

  /// Entries line by line.
  struct Lines {
    std::int64_t lines = 0;  ///< rows of the matrix, or columns
    Tensor starts;           ///< (lines + 1) int64, the first entry of each line, then their number
    Tensor places;           ///< (entries) int32, column of a row's entry, row of a column's
    Tensor values;           ///< (entries) float64
  };
  /// Both orders of the entries, shared by copies of the operator and by autograd's nodes.
  struct Matrix : torch::CustomClassHolder {
    Lines by_row, by_column;  ///< for apply(), and for its adjoint
  };

  const Lines& by_row() const { return matrix_->by_row; }  ///< the entries row by row

 private:
  c10::intrusive_ptr<Matrix> matrix_;
};

/// sum over the entries of each line of value * in[place]: what apply computes where there is no kernel of ours.
/// @param in  (vectors, places), any dtype and device; @return (vectors, lines)
Tensor line_sums_by_index(const SparseOperator::Lines& lines, const Tensor& in);
/// The same for value * (in[place] - centre[line])^2. @param center  (vectors, lines)
Tensor line_spreads_by_index(const SparseOperator::Lines& lines, const Tensor& in, const Tensor& center);

}  // namespace mpol
