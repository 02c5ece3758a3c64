#include <mpol_cpp/analysis/polar_bins.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol {
namespace {

constexpr double edge_on_plane = 1e-8;      // |cos i|
constexpr double least_part = 1e-13;        // of a pixel: below it is rounding
constexpr double widest_wedge = 2.0;        // radian; wider bins are cut, since a wedge is convex up to pi only
constexpr double whole_turn = 1 - 1e-12;    // of 2 pi
constexpr double near_center_share = 1e-6;  // of a pixel

double azimuth_of(const PlanePoint& point) { return std::atan2(point.y, point.x); }

bool contains_origin(const ConvexPolygon& polygon, double tolerance) {
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const auto &a = polygon[i], &b = polygon.after(i);
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    if (a.x * (b.y - a.y) - a.y * (b.x - a.x) < -tolerance * length) return false;
  }
  return true;
}

double distance_to_edge(const PlanePoint& a, const PlanePoint& b) {
  const double x = b.x - a.x, y = b.y - a.y;
  const double share = std::clamp(-(a.x * x + a.y * y) / (x * x + y * y), 0.0, 1.0);
  return std::hypot(a.x + share * x, a.y + share * y);
}

/// Least and largest value.
struct Extent {
  double low, high;
};

Extent radii_of(const ConvexPolygon& polygon, bool holds_center) {
  Extent radii{holds_center ? 0 : std::hypot(polygon[0].x, polygon[0].y), 0};
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    radii.low = std::min(radii.low, distance_to_edge(polygon[i], polygon.after(i)));
    radii.high = std::max(radii.high, std::hypot(polygon[i].x, polygon[i].y));
  }
  return radii;
}

/// The azimuths of a polygon without the centre, which is seen under less than pi.
Extent azimuths_of(const ConvexPolygon& polygon) {
  const auto& first = polygon[0];
  Extent turn{0, 0};
  for (std::size_t i = 1; i < polygon.size(); ++i) {
    const auto& corner = polygon[i];
    const double angle = std::atan2(first.x * corner.y - first.y * corner.x, first.x * corner.x + first.y * corner.y);
    turn.low = std::min(turn.low, angle);
    turn.high = std::max(turn.high, angle);
  }
  const double start = azimuth_of(first);
  return {start + turn.low, start + turn.high};
}

/// First and last + 1 of the bins that meet an extent; a bin too many does no harm.
std::array<std::size_t, 2> bins_meeting(const std::vector<double>& edges, const Extent& extent) {
  const auto begin = edges.begin();
  const auto first = std::upper_bound(begin, edges.end(), extent.low) - begin - 1;
  const auto last = std::lower_bound(begin, edges.end(), extent.high) - begin;
  const auto bins = static_cast<std::ptrdiff_t>(edges.size()) - 1;
  return {static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(first, 0, bins)),
          static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(last, 0, bins))};
}

/// Splits the pixels of one row of the image.
class RowSplitter {
 public:
  RowSplitter(const PixelsInPlane& pixels, const std::vector<double>& radii, const std::vector<double>& azimuths)
      : pixels_(pixels), radii_(radii), azimuths_(azimuths), scale_(1 / pixels.area()) {}

  void split(std::int64_t row, std::int64_t npix, std::vector<SparseOperator::Entry>& parts) {
    for (std::int64_t column = 0; column < npix; ++column) {
      const auto pixel = pixels_.pixel(row, column);
      const bool holds_center = contains_origin(pixel, near_center_share * std::sqrt(pixels_.area()));
      const auto reach = radii_of(pixel, holds_center);
      if (reach.low >= radii_.back() || reach.high <= radii_.front()) continue;
      choose_wedges(pixel, holds_center);
      for (const auto wedge : wedges_) add_wedge(pixel, wedge, reach, row * npix + column, parts);
    }
  }

 private:
  std::size_t wedge_count() const { return azimuths_.size() - 1; }
  bool is_whole_turn() const { return wedge_count() == 1 && azimuths_.back() - azimuths_.front() >= 2 * units::pi * whole_turn; }

  /// Bins in azimuth that the pixel may meet, in order.
  void choose_wedges(const ConvexPolygon& pixel, bool holds_center) {
    wedges_.clear();
    if (holds_center || wedge_count() == 1) {
      for (std::size_t wedge = 0; wedge < wedge_count(); ++wedge) wedges_.push_back(wedge);
      return;
    }
    const auto seen = azimuths_of(pixel);
    const double turns = std::floor((seen.low - azimuths_.front()) / (2 * units::pi));
    for (const double turn : {turns, turns + 1}) {
      const auto [first, last] = bins_meeting(azimuths_, {seen.low - turn * 2 * units::pi, seen.high - turn * 2 * units::pi});
      for (auto wedge = first; wedge < last; ++wedge) wedges_.push_back(wedge);
    }
    std::sort(wedges_.begin(), wedges_.end());
    wedges_.erase(std::unique(wedges_.begin(), wedges_.end()), wedges_.end());
  }

  void add_wedge(const ConvexPolygon& pixel, std::size_t wedge, const Extent& reach, std::int64_t number,
                 std::vector<SparseOperator::Entry>& parts) {
    const auto [first, last] = bins_meeting(radii_, reach);
    areas_.assign(last - first, 0);
    if (is_whole_turn()) {
      add_rings(pixel, first, reach);
    } else {
      const double from = azimuths_[wedge], to = azimuths_[wedge + 1];
      const auto cuts = static_cast<std::int64_t>(std::ceil((to - from) / widest_wedge));
      const double step = (to - from) / static_cast<double>(cuts);
      for (std::int64_t i = 0; i < cuts; ++i) {
        // Its ends are the edges to the last bit, which the next bins share.
        const double begin = i == 0 ? from : from + static_cast<double>(i) * step;
        const double end = i + 1 == cuts ? to : from + static_cast<double>(i + 1) * step;
        add_rings(part_in_wedge(pixel, begin, end), first, reach);
      }
    }
    for (std::size_t i = 0; i < areas_.size(); ++i) {
      const double part = areas_[i] * scale_;
      if (part <= least_part) continue;
      const auto bin = (first + i) * wedge_count() + wedge;
      parts.push_back({static_cast<std::int32_t>(bin), static_cast<std::int32_t>(number), part});
    }
  }

  /// Adds what a part of a pixel has in each ring from `first` on.
  void add_rings(const ConvexPolygon& part, std::size_t first, const Extent& reach) {
    if (part.size() == 0) return;
    const double whole = part.area();
    const auto within = [&](double radius) {
      if (radius <= reach.low) return 0.0;
      return radius >= reach.high ? whole : area_in_disc(part, radius);
    };
    double inner = within(radii_[first]);
    for (std::size_t i = 0; i < areas_.size(); ++i) {
      const double outer = within(radii_[first + i + 1]);
      areas_[i] += outer - inner;
      inner = outer;
    }
  }

  const PixelsInPlane& pixels_;
  const std::vector<double>&radii_, &azimuths_;
  double scale_;
  std::vector<std::size_t> wedges_;
  std::vector<double> areas_;
};

}  // namespace

PixelsInPlane::PixelsInPlane(const GridCoords& coords, const DiscGeometry& geometry)
    : cell_(coords.cell_size()),
      half_(static_cast<double>(coords.npix()) / 2),
      foreshortening_(std::abs(std::cos(geometry.inclination))),
      cosine_(std::cos(geometry.position_angle)),
      sine_(std::sin(geometry.position_angle)),
      east_(geometry.offset_east),
      north_(geometry.offset_north) {
  if (!(foreshortening_ >= edge_on_plane)) {
    throw ValueError(
        fmt::format("the inclination is {} degrees; a disc seen edge on has no plane to integrate in: it must "
                    "differ from 90",
                    geometry.inclination / units::degree));
  }
}

PlanePoint PixelsInPlane::corner(std::int64_t row, std::int64_t column) const {
  // The middle of column half - 1 is at 0 East, that of row half at 0 North.
  const double east = (half_ - 0.5 - static_cast<double>(column)) * cell_ - east_;
  const double north = (static_cast<double>(row) - half_ - 0.5) * cell_ - north_;
  return {east * sine_ + north * cosine_, (east * cosine_ - north * sine_) / foreshortening_};
}

ConvexPolygon PixelsInPlane::pixel(std::int64_t row, std::int64_t column) const {
  // From x (North) to y (East) is counter-clockwise in the plane; columns run to the West.
  const std::array<PlanePoint, 4> corners = {corner(row, column + 1), corner(row + 1, column + 1), corner(row + 1, column),
                                             corner(row, column)};
  return ConvexPolygon(corners);
}

double PixelsInPlane::area() const { return cell_ * cell_ / foreshortening_; }

std::vector<SparseOperator::Entry> pixel_parts(const PixelsInPlane& pixels, std::int64_t npix, const std::vector<double>& radii,
                                               const std::vector<double>& azimuths) {
  std::vector<std::vector<SparseOperator::Entry>> rows(static_cast<std::size_t>(npix));
  ops::share_tasks(npix, 1, [&](std::int64_t row, std::int64_t) {
    RowSplitter(pixels, radii, azimuths).split(row, npix, rows[static_cast<std::size_t>(row)]);
  });
  std::size_t count = 0;
  for (const auto& row : rows) count += row.size();
  std::vector<SparseOperator::Entry> parts;
  parts.reserve(count);
  for (const auto& row : rows) parts.insert(parts.end(), row.begin(), row.end());
  return parts;
}

}  // namespace mpol
