#include <mpol_cpp/simulation/sky_model.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr double profile_reach = 7;  // sigmas, where a profile has fallen to 2e-11

double sigma_of(double fwhm) { return fwhm / units::fwhm_per_sigma; }

/// Concentration of the von Mises profile exp(kappa (cos phi - 1)) with a given full width at half maximum.
double von_mises_kappa(double fwhm) { return std::log(2.0) / (1 - std::cos(fwhm / 2)); }

/// Integral of exp(kappa (cos phi - 1)) over the circle: 2 pi exp(-kappa) I_0(kappa).
double von_mises_integral(double kappa) {
  if (kappa < 300) return 2 * units::pi * std::exp(-kappa) * std::cyl_bessel_i(0.0, kappa);
  const double x = 1 / (8 * kappa);  // asymptotic series of I_0: the first neglected term is below 1e-11
  return std::sqrt(2 * units::pi / kappa) * (1 + x * (1 + x * (4.5 + x * 37.5)));
}

/// Integral of exp(-(r - radius)^2 / (2 sigma^2)) r dr from 0 on.
double radial_integral(double radius, double sigma) {
  const double t = radius / (std::sqrt(2.0) * sigma);
  return sigma * sigma * std::exp(-t * t) + radius * sigma * std::sqrt(units::pi / 2) * (1 + std::erf(t));
}

/// One profile, ready to be evaluated: peak exp(-(r - radius)^2 / (2 sigma^2) + kappa (cos(phi - azimuth) - 1)).
struct Component {
  double peak, radius, sigma;
  double kappa, azimuth;  // kappa = 0: a ring
};

/// Direction in the plane of the disc, from its major axis, of a position angle on the sky.
double azimuth_in_disc(const RingedDisc& disc, double position_angle) {
  const double relative = position_angle - disc.position_angle;
  return std::atan2(std::sin(relative) / std::cos(disc.inclination), std::cos(relative));
}

/// The disc as a sum of components with the total flux 1 Jy.
class UnitDisc {
 public:
  explicit UnitDisc(const RingedDisc& disc) : disc_(disc), cos_inclination_(std::cos(disc.inclination)) {
    double brightest = 0, total = 0;
    for (const auto& ring : disc.rings) {
      brightest = std::max(brightest, ring.brightness);
      components_.push_back({ring.brightness, ring.radius, sigma_of(ring.width), 0, 0});
    }
    if (disc.crescent) {
      const auto& crescent = *disc.crescent;
      components_.push_back({crescent.contrast * (brightest > 0 ? brightest : 1), crescent.radius, sigma_of(crescent.width),
                             von_mises_kappa(crescent.azimuthal_width), azimuth_in_disc(disc, crescent.position_angle)});
    }
    for (const auto& part : components_)
      total += part.peak * radial_integral(part.radius, part.sigma) * von_mises_integral(part.kappa);
    for (auto& part : components_) part.peak /= total * cos_inclination_;
  }

  /// Jy/arcsec^2 at an offset from the phase centre in arcsec.
  double brightness(double east, double north) const {
    const double x = east - disc_.offset_east, y = north - disc_.offset_north;
    const double sine = std::sin(disc_.position_angle), cosine = std::cos(disc_.position_angle);
    const double along = x * sine + y * cosine;
    const double across = (x * cosine - y * sine) / cos_inclination_;
    const double radius = std::hypot(along, across), azimuth = std::atan2(across, along);
    double sum = 0;
    for (const auto& part : components_) {
      const double t = (radius - part.radius) / part.sigma;
      if (std::abs(t) > 1.3 * profile_reach) continue;
      sum += part.peak * std::exp(-t * t / 2 + part.kappa * (std::cos(azimuth - part.azimuth) - 1));
    }
    return sum;
  }

 private:
  const RingedDisc& disc_;
  double cos_inclination_;
  std::vector<Component> components_;
};

void require(bool holds, const char* what, double value, const char* limit) {
  if (!holds) throw ValueError(fmt::format("{} {}: {}", what, value, limit));
}

bool positive(double value) { return value > 0 && std::isfinite(value); }
bool not_negative(double value) { return value >= 0 && std::isfinite(value); }

}  // namespace

double RingedDisc::flux_at(double frequency) const { return flux * std::pow(frequency / reference_frequency, spectral_index); }

double RingedDisc::half_width() const {
  double reach = 0;
  for (const auto& ring : rings) reach = std::max(reach, ring.radius + profile_reach * sigma_of(ring.width));
  if (crescent) reach = std::max(reach, crescent->radius + profile_reach * sigma_of(crescent->width));
  return reach + std::max(std::abs(offset_east), std::abs(offset_north));
}

double RingedDisc::finest_sigma() const {
  double finest = std::numeric_limits<double>::infinity();
  for (const auto& ring : rings) finest = std::min(finest, sigma_of(ring.width));
  if (crescent) {
    const double arc = crescent->radius > 0 ? crescent->radius / std::sqrt(von_mises_kappa(crescent->azimuthal_width)) : finest;
    finest = std::min({finest, sigma_of(crescent->width), arc});
  }
  return finest * std::cos(inclination);
}

void RingedDisc::check() const {
  require(positive(flux), "flux", flux, "it must be positive, in Jy");
  require(positive(reference_frequency), "reference frequency", reference_frequency, "it must be positive, in Hz");
  require(std::isfinite(spectral_index), "spectral index", spectral_index, "it must be a number");
  require(inclination >= 0 && inclination <= 85 * units::degree, "inclination", inclination / units::degree,
          "it lies between 0 (face on) and 85 degrees");
  require(std::isfinite(position_angle), "position angle", position_angle, "it must be a number");
  require(std::isfinite(offset_east), "offset to the East", offset_east, "it must be a number of arcsec");
  require(std::isfinite(offset_north), "offset to the North", offset_north, "it must be a number of arcsec");
  if (rings.empty() && !crescent) throw ValueError("a disc without rings and without a crescent: give one of them");
  for (const auto& ring : rings) {
    require(not_negative(ring.radius), "ring radius", ring.radius, "it must be 0 or positive, in arcsec");
    require(positive(ring.width), "ring width", ring.width, "it must be positive, in arcsec");
    require(positive(ring.brightness), "ring brightness", ring.brightness, "it must be positive");
  }
  if (!crescent) return;
  require(positive(crescent->radius), "crescent radius", crescent->radius, "it must be positive, in arcsec");
  require(positive(crescent->width), "crescent width", crescent->width, "it must be positive, in arcsec");
  require(std::isfinite(crescent->position_angle), "crescent position angle", crescent->position_angle, "it must be a number");
  require(crescent->azimuthal_width >= 5 * units::degree && crescent->azimuthal_width <= 360 * units::degree,
          "crescent azimuthal width", crescent->azimuthal_width / units::degree, "it lies between 5 and 360 degrees");
  require(positive(crescent->contrast), "crescent contrast", crescent->contrast, "it must be positive");
}

Tensor render(const RingedDisc& disc, const GridCoords& coords, const std::vector<double>& frequencies, std::int64_t oversample) {
  disc.check();
  if (oversample < 1) throw ValueError(fmt::format("oversample {}: at least 1", oversample));
  if (frequencies.empty()) throw ValueError("no frequencies: give one per channel, in Hz");
  const UnitDisc unit_disc(disc);
  const auto npix = coords.npix(), half = npix / 2;
  auto image = at::empty({npix, npix}, torch::kFloat64);
  auto* pixels = image.mutable_data_ptr<double>();
  const auto samples = static_cast<double>(oversample);
  const auto sub_pixel = [&](std::int64_t k) { return ((static_cast<double>(k) + 0.5) / samples - 0.5); };
  at::parallel_for(0, npix, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t column = 0; column < npix; ++column) {
        double sum = 0;
        for (std::int64_t k = 0; k < oversample * oversample; ++k) {
          const std::int64_t sub_row = k / oversample, sub_column = k % oversample;
          const double north = static_cast<double>(row - half) + sub_pixel(sub_row);
          const double east = static_cast<double>(half - 1 - column) + sub_pixel(sub_column);
          sum += unit_disc.brightness(east * coords.cell_size(), north * coords.cell_size());
        }
        pixels[row * npix + column] = sum / (samples * samples);
      }
    }
  });
  std::vector<double> fluxes;
  fluxes.reserve(frequencies.size());
  for (const double frequency : frequencies) fluxes.push_back(disc.flux_at(frequency));
  return at::tensor(fluxes, torch::kFloat64).reshape({-1, 1, 1}) * image;
}

GridCoords sampling_grid(const RingedDisc& disc, double max_abs_uv) {
  disc.check();
  // A Gaussian's transform has fallen to 3e-15 at 1.3/sigma; its repetitions are 1/cell apart.
  const double sigma = disc.finest_sigma() * units::arcsec;
  const double cell_size = 1 / (max_abs_uv + 1.3 / sigma) / units::arcsec;
  const auto npix = 2 * static_cast<std::int64_t>(std::ceil(disc.half_width() / cell_size)) + 2;
  if (npix > 16384)
    throw ValueError(
        fmt::format("a disc {:.3g} arcsec wide with structure of {:.2g} arcsec takes {} pixels across to "
                    "sample; at most 16384: widen its rings or shorten the baselines",
                    2 * disc.half_width(), disc.finest_sigma(), npix));
  return {cell_size, npix};
}

}  // namespace mpol
