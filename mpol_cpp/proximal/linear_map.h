#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <mpol_cpp/proximal/problem_values.h>

namespace mpol {

/// A real linear map A of (…, channels, rows, columns) and its adjoint: <A x, y> = <x, A* y> for each problem.
class LinearMap {
 public:
  virtual ~LinearMap() = default;
  virtual Tensor apply(const Tensor& x) const = 0;    ///< A x
  virtual Tensor adjoint(const Tensor& y) const = 0;  ///< A* y
};

/// A x = x.
class IdentityMap : public LinearMap {
 public:
  Tensor apply(const Tensor& x) const override { return x; }
  Tensor adjoint(const Tensor& y) const override { return y; }
};

/// A map by two functions, such as a Nufft's on real images.
class LinearFunctions : public LinearMap {
 public:
  using Function = std::function<Tensor(const Tensor&)>;  ///< one of the two
  /// @param adjoint  that of `apply`: <apply(x), y> = <x, adjoint(y)>, which is not checked
  LinearFunctions(Function apply, Function adjoint) : apply_(std::move(apply)), adjoint_(std::move(adjoint)) {}
  Tensor apply(const Tensor& x) const override { return apply_(x); }
  Tensor adjoint(const Tensor& y) const override { return adjoint_(y); }

 private:
  Function apply_, adjoint_;
};

/// Several maps of the same x, one below the other: their results are joined along the channels.
class StackedMap : public LinearMap {
 public:
  /// @param channels  of each map's result
  /// @throws ValueError unless each map has its number of channels, > 0
  StackedMap(std::vector<std::shared_ptr<const LinearMap>> maps, std::vector<std::int64_t> channels);
  Tensor apply(const Tensor& x) const override;
  Tensor adjoint(const Tensor& y) const override;

 private:
  std::vector<std::shared_ptr<const LinearMap>> maps_;
  std::vector<std::int64_t> channels_;
};

/// What differences are taken of at the edges of an image.
enum class Boundary {
  free,      ///< x[i+1] - x[i], 0 in the last row or column: TV of losses::tv_image but for its last row and column
  periodic,  ///< x[i] - x[i-1], the first from the last
};

/// Differences along rows (down), then along columns: (…, C, rows, columns) to (…, 2 C, rows, columns). Its norm is below
/// sqrt(8).
class ImageDifferences : public LinearMap {
 public:
  /// @param boundary  what the differences at the edges are taken of
  explicit ImageDifferences(Boundary boundary = Boundary::free) : boundary_(boundary) {}
  Tensor apply(const Tensor& x) const override;
  Tensor adjoint(const Tensor& y) const override;

 private:
  Boundary boundary_;
};

/// Options of squared_norm().
struct PowerOptions {
  std::int64_t most_iterations = 200;  ///< >= 1
  double tolerance = 1e-4;             ///< relative change at which it ends, > 0
  double margin = 1.01;                ///< that the result is multiplied with, >= 1: power steps come from below
};

/// The largest eigenvalue of A*A in each problem, (…) float64, by power steps from an image that is the same in every run.
/// @param like  shape, dtype and device of x
/// @throws ValueError for options out of range
Tensor squared_norm(const LinearMap& map, const Tensor& like, const PowerOptions& options = {});

}  // namespace mpol
