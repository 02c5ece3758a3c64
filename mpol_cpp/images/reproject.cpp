#include <mpol_cpp/images/reproject.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// A place in the old image: column and row, which are whole in the middle of a pixel.
using Place = std::array<double, 2>;

/// A convex polygon: a parallelogram that four half planes have cut has eight corners at most.
struct Polygon {
  std::array<Place, 8> corners;
  std::size_t count = 0;

  void add(const Place& corner) {
    if (count < corners.size()) corners[count++] = corner;
  }

  double area() const {
    double twice = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto &a = corners[i], &b = corners[(i + 1) % count];
      twice += (a[0] - corners[0][0]) * (b[1] - corners[0][1]) - (b[0] - corners[0][0]) * (a[1] - corners[0][1]);
    }
    return std::abs(twice) / 2;
  }

  /// The smallest and the largest coordinate along an axis.
  std::pair<double, double> extent(std::size_t axis) const {
    double low = corners[0][axis], high = low;
    for (std::size_t i = 1; i < count; ++i) {
      low = std::min(low, corners[i][axis]);
      high = std::max(high, corners[i][axis]);
    }
    return {low, high};
  }

  /// The part where sign (coordinate - bound) >= 0.
  Polygon cut(std::size_t axis, double bound, double sign) const {
    Polygon part;
    for (std::size_t i = 0; i < count; ++i) {
      const auto &a = corners[i], &b = corners[(i + 1) % count];
      const double from = sign * (a[axis] - bound), to = sign * (b[axis] - bound);
      if (from >= 0) part.add(a);
      if ((from < 0) == (to < 0)) continue;
      const double way = from / (from - to);
      part.add({a[0] + way * (b[0] - a[0]), a[1] + way * (b[1] - a[1])});
    }
    return part;
  }

  /// The part within half a pixel of a whole coordinate.
  Polygon strip(std::size_t axis, std::int64_t middle) const {
    const auto at = static_cast<double>(middle);
    return cut(axis, at - 0.5, 1).cut(axis, at + 0.5, -1);
  }
};

/// Whole coordinates, of `size`, whose pixels an extent touches: the first, and the one after the last.
std::pair<std::int64_t, std::int64_t> touched(std::pair<double, double> extent, std::int64_t size) {
  const auto whole = [size](double value) {
    return static_cast<std::int64_t>(std::floor(std::clamp(value + 0.5, -1.0, static_cast<double>(size))));
  };
  return {std::max<std::int64_t>(whole(extent.first), 0), std::min(whole(extent.second) + 1, size)};
}

/// Squares of the new grid as polygons in the old image.
class Squares {
 public:
  Squares(const PixelLattice& from, const GridCoords& to, const SkyOffset& center)
      : from_(from), center_(center), cell_(to.cell_size()), middle_(to.npix() / 2) {
    determinant_ = from.east_per_column * from.north_per_row - from.east_per_row * from.north_per_column;
  }

  Polygon at(std::int64_t row, std::int64_t column) const {
    const double east = center_.east - static_cast<double>(column - (middle_ - 1)) * cell_;
    const double north = center_.north + static_cast<double>(row - middle_) * cell_;
    const double half = cell_ / 2;
    Polygon square;
    square.add(place(east - half, north - half));
    square.add(place(east + half, north - half));
    square.add(place(east + half, north + half));
    square.add(place(east - half, north + half));
    return square;
  }

 private:
  Place place(double east, double north) const {
    return {from_.reference_column + (from_.north_per_row * east - from_.east_per_row * north) / determinant_,
            from_.reference_row + (from_.east_per_column * north - from_.north_per_column * east) / determinant_};
  }

  PixelLattice from_;
  SkyOffset center_;
  double cell_;
  std::int64_t middle_;
  double determinant_;
};

void check(const Tensor& cube, const PixelLattice& from) {
  if (cube.dim() < 2 || !cube.is_floating_point())
    throw ShapeError(fmt::format("the image has shape {}; it must be (…, rows, columns), floating", cube.sizes().vec()));
  if (cube.requires_grad() && at::GradMode::is_enabled())
    throw ValueError("the image requires a gradient, which does not pass through reproject: give it detached");
  if (!(from.area() > 1e-9 * from.width() * from.height()) || !std::isfinite(from.area()))
    throw ValueError(fmt::format("pixels of {} x {} arcsec have an area of {} arcsec^2; it must be larger than 0", from.width(),
                                 from.height(), from.area()));
}

}  // namespace

SkyOffset PixelLattice::sky(double row, double column) const {
  const double rows = row - reference_row, columns = column - reference_column;
  return {east_per_column * columns + east_per_row * rows, north_per_column * columns + north_per_row * rows};
}

double PixelLattice::width() const { return std::hypot(east_per_column, north_per_column); }

double PixelLattice::height() const { return std::hypot(east_per_row, north_per_row); }

double PixelLattice::area() const { return std::abs(east_per_column * north_per_row - east_per_row * north_per_column); }

Tensor reproject(const Tensor& cube, const PixelLattice& from, const GridCoords& to, const SkyOffset& center) {
  check(cube, from);
  const auto rows = cube.size(-2), columns = cube.size(-1), npix = to.npix();
  const auto old = cube.detach().to(torch::kCPU, torch::kFloat64).reshape({-1, rows, columns}).contiguous();
  auto result = at::zeros({old.size(0), npix, npix}, old.options());
  const auto* values = old.const_data_ptr<double>();
  auto* sums = result.mutable_data_ptr<double>();
  const Squares squares(from, to, center);
  const double part = from.area() / (to.cell_size() * to.cell_size());  // of a new pixel that an old one fills
  const auto add_to = [&](std::int64_t pixel, std::int64_t source, double weight) {
    for (std::int64_t channel = 0; channel < old.size(0); ++channel)
      sums[channel * npix * npix + pixel] += weight * values[channel * rows * columns + source];
  };
  at::parallel_for(0, npix, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto pixel = begin * npix; pixel < end * npix; ++pixel) {
      const auto square = squares.at(pixel / npix, pixel % npix);
      const auto [first_row, end_row] = touched(square.extent(1), rows);
      for (auto row = first_row; row < end_row; ++row) {
        const auto strip = square.strip(1, row);
        if (strip.count < 3) continue;
        const auto [first_column, end_column] = touched(strip.extent(0), columns);
        for (auto column = first_column; column < end_column; ++column)
          add_to(pixel, row * columns + column, part * strip.strip(0, column).area());
      }
    }
  });
  auto shape = cube.sizes().vec();
  shape[shape.size() - 2] = shape.back() = npix;
  return result.view(shape).to(cube.options().requires_grad(false));
}

}  // namespace mpol
