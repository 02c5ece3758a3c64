#include <mpol_cpp/simulation/keplerian_disc.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <ATen/ops/erf.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// Speed of the Earth about the Sun on a circle of 1 au, sqrt(G Msun / au), km/s. An arcsec at a parsec is 1 au.
constexpr double speed_at_one_au = 29.784691829;

void require_of_disc(bool holds, const char* what, double value, const char* limit) {
  if (!holds) throw ValueError(fmt::format("{} {}: {}", what, value, limit));
}

/// Integral of r^-index over the disc as it is seen: 2 pi cos i r^(1 - index) dr.
double area_integral(const KeplerianDisc& disc) {
  const double power = 2 - disc.brightness_index;
  const double radial = std::abs(power) < 1e-9
                            ? std::log(disc.outer_radius / disc.inner_radius)
                            : (std::pow(disc.outer_radius, power) - std::pow(disc.inner_radius, power)) / power;
  return 2 * units::pi * std::cos(disc.inclination) * radial;
}

/// The points of the disc among given points of the sky.
struct DiscPoints {
  Tensor pixel;       ///< (n) int64
  Tensor brightness;  ///< (n) integrated over velocity, Jy km/s/arcsec^2
  Tensor velocity;    ///< (n) along the line of sight, km/s
};

/// @param x, y  (npix, npix) offsets from the star to the East and North, arcsec
DiscPoints points_of(const KeplerianDisc& disc, const Tensor& x, const Tensor& y) {
  const double sine = std::sin(disc.position_angle), cosine = std::cos(disc.position_angle);
  const auto along = x * sine + y * cosine, across = (x * cosine - y * sine) / std::cos(disc.inclination);
  const auto radius = at::hypot(along, across).flatten();
  const auto pixel = ((radius >= disc.inner_radius).logical_and(radius <= disc.outer_radius)).nonzero().flatten();
  const auto inside = radius.index_select(0, pixel), major = along.flatten().index_select(0, pixel);
  const double scale = disc.flux / area_integral(disc);
  const double rotation = disc.velocity_at(1) * std::sin(disc.inclination);
  return {pixel, scale * inside.pow(-disc.brightness_index),
          disc.systemic_velocity + rotation * inside.pow(-0.5) * major / inside};
}

/// Velocity from one channel to the next, km/s.
double channel_step(double channel_spacing, double rest_frequency) {
  require_of_disc(rest_frequency > 0 && std::isfinite(rest_frequency), "rest frequency", rest_frequency,
                  "it must be positive, in Hz");
  require_of_disc(channel_spacing != 0 && std::isfinite(channel_spacing), "channel spacing", channel_spacing,
                  "it must be finite and not 0, in Hz");
  return -channel_spacing / rest_frequency * units::speed_of_light / 1e3;
}

}  // namespace

double KeplerianDisc::velocity_at(double radius) const { return speed_at_one_au * std::sqrt(mass / (radius * distance)); }

double KeplerianDisc::velocity_extent() const {
  constexpr double widths = 2.2;  // 5.2 sigma
  return velocity_at(inner_radius) * std::abs(std::sin(inclination)) + widths * line_width;
}

double KeplerianDisc::half_width() const { return outer_radius + std::max(std::abs(offset_east), std::abs(offset_north)); }

void KeplerianDisc::check() const {
  const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
  require_of_disc(positive(mass), "mass", mass, "it must be positive, in solar masses");
  require_of_disc(positive(distance), "distance", distance, "it must be positive, in parsec");
  require_of_disc(inclination >= 0 && inclination < units::pi / 2, "inclination", inclination,
                  "it must be from 0 to below pi/2, in radian");
  require_of_disc(std::isfinite(position_angle), "position angle", position_angle, "it must be finite, in radian");
  require_of_disc(std::isfinite(offset_east), "offset to the East", offset_east, "it must be finite, in arcsec");
  require_of_disc(std::isfinite(offset_north), "offset to the North", offset_north, "it must be finite, in arcsec");
  require_of_disc(std::isfinite(systemic_velocity), "systemic velocity", systemic_velocity, "it must be finite, in km/s");
  require_of_disc(positive(inner_radius), "inner radius", inner_radius, "it must be positive, in arcsec");
  require_of_disc(std::isfinite(outer_radius) && outer_radius > inner_radius, "outer radius", outer_radius,
                  "it must be larger than the inner one, in arcsec");
  require_of_disc(std::isfinite(brightness_index), "brightness index", brightness_index, "it must be finite");
  require_of_disc(positive(line_width), "line width", line_width, "it must be positive, in km/s");
  require_of_disc(positive(flux), "flux", flux, "it must be positive, in Jy km/s");
}

Tensor render(const KeplerianDisc& disc, const GridCoords& coords, const std::vector<double>& velocities, double channel_width,
              std::int64_t oversample) {
  disc.check();
  require_of_disc(channel_width > 0 && std::isfinite(channel_width), "channel width", channel_width,
                  "it must be positive, in km/s");
  if (velocities.empty()) throw ValueError("a line needs a channel, and there are no velocities");
  if (oversample < 1) throw ValueError(fmt::format("oversample {}: at least one point in each pixel is needed", oversample));
  const auto npix = coords.npix(), nchan = static_cast<std::int64_t>(velocities.size());
  auto cube = at::zeros({nchan, npix, npix}, torch::kFloat64);
  const auto x = coords.sky_x() - disc.offset_east, y = coords.sky_y() - disc.offset_north;
  const double step = 1 / static_cast<double>(oversample), points = static_cast<double>(oversample * oversample);
  const double root_two_sigma = std::numbers::sqrt2 * disc.line_width / units::fwhm_per_sigma;
  for (std::int64_t point = 0; point < oversample * oversample; ++point) {
    const auto place = [&](std::int64_t i) { return coords.cell_size() * ((static_cast<double>(i) + 0.5) * step - 0.5); };
    const auto part = points_of(disc, x + place(point % oversample), y + place(point / oversample));
    const auto share = part.brightness / (2 * channel_width * points);
    for (std::int64_t c = 0; c < nchan; ++c) {
      const double middle = velocities[static_cast<std::size_t>(c)];
      const auto upper = at::erf((middle + channel_width / 2 - part.velocity) / root_two_sigma);
      const auto lower = at::erf((middle - channel_width / 2 - part.velocity) / root_two_sigma);
      cube[c].view({-1}).index_add_(0, part.pixel, share * (upper - lower));
    }
  }
  return cube;
}

std::int64_t line_width_in_channels(const KeplerianDisc& disc, double channel_spacing, double rest_frequency) {
  disc.check();
  const double channels = disc.velocity_extent() / std::abs(channel_step(channel_spacing, rest_frequency));
  if (!(channels < 1e6)) throw ValueError(fmt::format("a line in {:.3g} channels: use wider ones", 2 * channels));
  return 2 * std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(channels - 0.5))) + 1;
}

Tensor line_channels(const KeplerianDisc& disc, const GridCoords& coords, double channel_spacing, double rest_frequency,
                     std::int64_t oversample) {
  const auto each_side = line_width_in_channels(disc, channel_spacing, rest_frequency) / 2;
  const double step = channel_step(channel_spacing, rest_frequency);
  std::vector<double> velocities;
  for (std::int64_t i = -each_side; i <= each_side; ++i)
    velocities.push_back(disc.systemic_velocity + step * static_cast<double>(i));
  return render(disc, coords, velocities, std::abs(step), oversample);
}

}  // namespace mpol
