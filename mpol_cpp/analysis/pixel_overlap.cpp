#include <mpol_cpp/analysis/pixel_overlap.h>

#include <algorithm>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

double cross(const PlanePoint& a, const PlanePoint& b) { return a.x * b.y - a.y * b.x; }
double dot(const PlanePoint& a, const PlanePoint& b) { return a.x * b.x + a.y * b.y; }
PlanePoint difference(const PlanePoint& to, const PlanePoint& from) { return {to.x - from.x, to.y - from.y}; }
PlanePoint along(const PlanePoint& from, const PlanePoint& step, double share) {
  return {from.x + share * step.x, from.y + share * step.y};
}

/// Twice the signed area between the origin and a to b. The difference of neighbours is exact, so that a small polygon far
/// from the origin keeps its digits.
double twice_triangle(const PlanePoint& a, const PlanePoint& b) { return cross(a, difference(b, a)); }

/// Twice the signed area of the circle's sector that a to b is seen under.
double twice_sector(const PlanePoint& a, const PlanePoint& b, double square) {
  return square * std::atan2(twice_triangle(a, b), dot(a, b));
}

/// Twice the signed area that the triangle of origin, a and b shares with the disc of radius sqrt(square).
double twice_in_disc(const PlanePoint& a, const PlanePoint& b, double square) {
  const double outside_a = dot(a, a) - square, outside_b = dot(b, b) - square;
  if (outside_a <= 0 && outside_b <= 0) return twice_triangle(a, b);
  // Where |a + t (b - a)| is the radius.
  const auto edge = difference(b, a);
  const double length = dot(edge, edge), half = dot(a, edge), discriminant = half * half - length * outside_a;
  if (discriminant <= 0) return twice_sector(a, b, square);
  const double root = std::sqrt(discriminant), enters = (-half - root) / length, leaves = (-half + root) / length;
  if (enters >= 1 || leaves <= 0) return twice_sector(a, b, square);
  const auto first = enters > 0 ? along(a, edge, enters) : a, last = leaves < 1 ? along(a, edge, leaves) : b;
  double twice = twice_triangle(first, last);
  if (enters > 0) twice += twice_sector(a, first, square);
  if (leaves < 1) twice += twice_sector(last, b, square);
  return twice;
}

}  // namespace

ConvexPolygon::ConvexPolygon(std::span<const PlanePoint> corners) {
  if (corners.size() > most_corners) {
    throw ValueError(fmt::format("a polygon of {} corners; at most {} are kept", corners.size(), most_corners));
  }
  for (const auto& corner : corners) add(corner);
}

double ConvexPolygon::area() const {
  double twice = 0;
  for (std::size_t i = 0; i < size_; ++i) twice += twice_triangle(corners_[i], after(i));
  return twice / 2;
}

ConvexPolygon ConvexPolygon::cut(const PlanePoint& direction, double sign) const {
  ConvexPolygon part;
  for (std::size_t i = 0; i < size_; ++i) {
    const auto &here = corners_[i], &next = after(i);
    const double side_here = sign * cross(direction, here), side_next = sign * cross(direction, next);
    if (side_here >= 0 && part.size_ < most_corners) part.add(here);
    if ((side_here > 0 && side_next < 0) || (side_here < 0 && side_next > 0)) {
      // From the left to the right one always, so that the parts on both sides share the point to the last bit.
      const bool leaves = side_here * sign > 0;
      const auto &from = leaves ? here : next, &to = leaves ? next : here;
      const double side_from = cross(direction, from), side_to = cross(direction, to);
      if (part.size_ < most_corners) part.add(along(from, difference(to, from), side_from / (side_from - side_to)));
    }
  }
  if (part.size_ < 3) part.size_ = 0;
  return part;
}

ConvexPolygon ConvexPolygon::left_of(const PlanePoint& direction) const { return cut(direction, 1); }
ConvexPolygon ConvexPolygon::right_of(const PlanePoint& direction) const { return cut(direction, -1); }

double area_in_disc(const ConvexPolygon& polygon, double radius) {
  const double square = radius * radius;
  double twice = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) twice += twice_in_disc(polygon[i], polygon.after(i), square);
  return twice / 2;
}

ConvexPolygon part_in_wedge(const ConvexPolygon& polygon, double first, double second) {
  if (!(second > first && second - first <= units::pi)) {
    throw ValueError(fmt::format("a wedge from {} to {} radian; it must open by more than 0 and at most pi", first, second));
  }
  return polygon.left_of({std::cos(first), std::sin(first)}).right_of({std::cos(second), std::sin(second)});
}

}  // namespace mpol
