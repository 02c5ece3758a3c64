#include <mpol_cpp/gridding/beam_shape.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/gaussian_fit.h>

namespace mpol {
namespace {

constexpr int wedge_count = 24;
constexpr double wedge_width = 2 * units::pi / wedge_count;
constexpr double overlap = 0.3;  // of a wedge, on either side
constexpr auto no_null = std::numeric_limits<std::int64_t>::max();

/// A beam by offsets from its peak in pixels.
struct CenteredBeam {
  const double* values;
  std::int64_t npix;

  std::int64_t west() const { return npix / 2; }  // largest offsets within the image
  std::int64_t east() const { return npix / 2 - 1; }
  std::int64_t south() const { return npix / 2; }
  std::int64_t north() const { return npix / 2 - 1; }
  bool holds(std::int64_t l, std::int64_t m) const { return l >= -west() && l <= east() && m >= -south() && m <= north(); }
  double at(std::int64_t l, std::int64_t m) const { return values[(npix / 2 + m) * npix + npix / 2 - 1 - l]; }
};

/// Calls `visit(wedge)` for the one to three wedges that hold a direction.
template <typename Visit>
void for_wedges(std::int64_t l, std::int64_t m, const Visit& visit) {
  const double theta = std::atan2(static_cast<double>(m), static_cast<double>(l)) + units::pi;
  const auto nearest = static_cast<int>(theta / wedge_width);
  for (int wedge = nearest - 2; wedge <= nearest + 1; ++wedge) {
    if (theta >= (wedge - overlap) * wedge_width && theta <= (wedge + 1 + overlap) * wedge_width) {
      visit(static_cast<std::size_t>((wedge + wedge_count) % wedge_count));
    }
  }
}

/// Square of the distance of the first null in each wedge, pixels, and how far out one had to look for all of them.
struct Nulls {
  std::array<std::int64_t, wedge_count> squared;
  std::int64_t searched;
};

/// Calls `visit(l, m)` for the pixels of the square ring at that distance that lie in the image.
template <typename Visit>
void for_ring(const CenteredBeam& beam, std::int64_t distance, const Visit& visit) {
  for (auto m = -distance; m <= distance; ++m) {
    const auto step = m == -distance || m == distance ? 1 : 2 * distance;
    for (auto l = -distance; l <= distance; l += step) {
      if (beam.holds(l, m)) visit(l, m);
    }
  }
}

Nulls find_nulls(const CenteredBeam& beam) {
  Nulls nulls{};
  nulls.squared.fill(no_null);
  for (std::int64_t distance = 1; distance <= beam.npix / 2; ++distance) {
    for_ring(beam, distance, [&](std::int64_t l, std::int64_t m) {
      if (beam.at(l, m) >= 0) return;
      for_wedges(l, m, [&](std::size_t wedge) { nulls.squared[wedge] = std::min(nulls.squared[wedge], l * l + m * m); });
    });
    nulls.searched = distance;
    if (*std::max_element(nulls.squared.begin(), nulls.squared.end()) <= distance * distance) break;
  }
  return nulls;
}

bool inside_nulls(const Nulls& nulls, std::int64_t l, std::int64_t m) {
  if (std::max(std::abs(l), std::abs(m)) > nulls.searched) return false;
  bool inside = true;
  for_wedges(l, m, [&](std::size_t wedge) { inside = inside && l * l + m * m < nulls.squared[wedge]; });
  return inside;
}

}  // namespace

BeamShape measure_beam(const Tensor& beam_image, double cell_size) {
  if (beam_image.dim() != 2 || beam_image.size(0) != beam_image.size(1) || beam_image.scalar_type() != torch::kDouble) {
    throw ShapeError(fmt::format("the beam has shape ({}); (npix, npix) float64 is needed", fmt::join(beam_image.sizes(), ", ")));
  }
  const auto contiguous = beam_image.contiguous();
  const CenteredBeam beam{contiguous.const_data_ptr<double>(), contiguous.size(0)};
  const auto nulls = find_nulls(beam);
  double sum = 0, sidelobe = 0;
  for (auto m = -beam.south(); m <= beam.north(); ++m) {
    for (auto l = -beam.west(); l <= beam.east(); ++l) {
      if (inside_nulls(nulls, l, m)) sum += beam.at(l, m);
      else sidelobe = std::max(sidelobe, std::abs(beam.at(l, m)));
    }
  }
  return {sum * cell_size * cell_size, sidelobe, gridding::fit_main_lobe(contiguous, cell_size)};
}

}  // namespace mpol
