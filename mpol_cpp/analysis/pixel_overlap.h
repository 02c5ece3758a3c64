#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace mpol {

/// A point of a plane whose origin is the centre of all circles and rays.
struct PlanePoint {
  double x = 0, y = 0;
};

/// A convex polygon of few corners, counter-clockwise: what rays leave of a pixel.
class ConvexPolygon {
 public:
  static constexpr std::size_t most_corners = 8;

  ConvexPolygon() = default;
  /// @throws ValueError for more than most_corners
  explicit ConvexPolygon(std::span<const PlanePoint> corners);

  std::size_t size() const { return size_; }
  const PlanePoint& operator[](std::size_t i) const { return corners_[i]; }
  /// The corner after the i-th one.
  const PlanePoint& after(std::size_t i) const { return corners_[i + 1 < size_ ? i + 1 : 0]; }

  double area() const;
  /// The part on the left of the ray from the origin along `direction`, prolonged to a line; or on its right.
  ConvexPolygon left_of(const PlanePoint& direction) const;
  ConvexPolygon right_of(const PlanePoint& direction) const;

 private:
  ConvexPolygon cut(const PlanePoint& direction, double sign) const;
  void add(const PlanePoint& corner) { corners_[size_++] = corner; }

  std::array<PlanePoint, most_corners> corners_;
  std::size_t size_ = 0;
};

/// The area that a polygon shares with the disc of a radius about the origin: a signed sum over its edges of the triangle
/// between origin and edge, or of the circle's sector where the edge lies outside of the circle. Exact, with an error
/// of rounding of about 1e-16 times distance times extent of the polygon.
double area_in_disc(const ConvexPolygon& polygon, double radius);

/// The polygon's part between the rays at two azimuths, radian, counter-clockwise from the first to the second.
/// @throws ValueError unless second - first is in (0, pi], within which the wedge is convex
ConvexPolygon part_in_wedge(const ConvexPolygon& polygon, double first, double second);

}  // namespace mpol
