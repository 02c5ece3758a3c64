#include <mpol_cpp/images/primary_beam.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include <ATen/ops/hypot.h>
#include <ATen/ops/special_bessel_j1.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr double usual_width = 1.13;  // FWHM in lambda/D

/// The antennas of a telescope: those of ALMA by the dish that acts like them, others by the width of a Gaussian.
struct Antennas {
  const char* telescope;
  double diameter;                    // metres
  double effective = 0, blocked = 0;  // metres, of an evenly lit dish
  double width = usual_width;         // FWHM in lambda/D, unless there is such a dish
};

// ALMA: as CASA has it. VLA: 42' at 1 GHz. NOEMA: 50" at 100 GHz. MeerKAT: 57.5' at 1.5 GHz, which is the usual width.
constexpr std::array<Antennas, 15> known_antennas = {{{.telescope = "ALMA", .diameter = 12, .effective = 10.7, .blocked = 0.75},
                                                      {.telescope = "ALMA", .diameter = 7, .effective = 6.25, .blocked = 0.75},
                                                      {.telescope = "EVLA", .diameter = 25, .width = 1.02},
                                                      {.telescope = "JVLA", .diameter = 25, .width = 1.02},
                                                      {.telescope = "VLA", .diameter = 25, .width = 1.02},
                                                      {.telescope = "NOEMA", .diameter = 15, .width = 1.21},
                                                      {.telescope = "IRAM_PDB", .diameter = 15, .width = 1.21},
                                                      {.telescope = "IRAM PDB", .diameter = 15, .width = 1.21},
                                                      {.telescope = "SMA", .diameter = 6},
                                                      {.telescope = "ATCA", .diameter = 22},
                                                      {.telescope = "MEERKAT", .diameter = 13.5},
                                                      {.telescope = "ASKAP", .diameter = 12},
                                                      {.telescope = "GMRT", .diameter = 45},
                                                      {.telescope = "UGMRT", .diameter = 45},
                                                      {.telescope = "WSRT", .diameter = 25}}};

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

void check_positive(double value, const char* what) {
  if (!(std::isfinite(value) && value > 0)) throw ValueError(fmt::format("{} of {}; it must be finite and > 0", what, value));
}

/// 2 J1(x)/x, 1 at x = 0.
Tensor jinc(const Tensor& x) {
  constexpr double small = 1e-4;  // below it 1 - x^2/8 is as good as float64 has it
  const auto safe = x.clamp_min(small);
  return at::where(x < small, 1 - x.square() / 8, 2 * at::special_bessel_j1(safe) / safe);
}

}  // namespace

PrimaryBeam::PrimaryBeam(double diameter, double blocked, double width, std::string words)
    : diameter_(diameter), blocked_(blocked), width_(width), words_(std::move(words)) {}

PrimaryBeam PrimaryBeam::airy(double diameter, double blocked) {
  check_positive(diameter, "a dish");
  if (!(blocked >= 0 && blocked < diameter))
    throw ValueError(fmt::format("{} m of a dish of {} m are blocked; it must be less than all, and >= 0", blocked, diameter));
  return {diameter, blocked, 0, fmt::format("an evenly lit dish of {} m, of which {} m are blocked", diameter, blocked)};
}

PrimaryBeam PrimaryBeam::gaussian(double fwhm, double frequency) {
  check_positive(fwhm, "a width in arcsec");
  check_positive(frequency, "a frequency in Hz");
  return {0, 0, std::sin(fwhm * units::arcsec) * frequency, "a Gaussian"};
}

std::optional<PrimaryBeam> PrimaryBeam::of_telescope(const std::string& telescope, double shortest) {
  const auto name = upper_case(telescope);
  const Antennas* found = nullptr;  // the widest that fit between each other, else the narrowest
  for (const auto& antennas : known_antennas) {
    if (name != antennas.telescope) continue;
    if (found == nullptr || (shortest > 0 && shortest < found->diameter)) found = &antennas;
  }
  if (found == nullptr) return std::nullopt;
  return of_antennas(found->diameter, telescope);
}

PrimaryBeam PrimaryBeam::of_antennas(double diameter, const std::string& telescope) {
  check_positive(diameter, "a dish in metres");
  const auto name = upper_case(telescope);
  const auto* found = std::find_if(known_antennas.begin(), known_antennas.end(), [&](const Antennas& antennas) {
    return name == antennas.telescope && antennas.diameter == diameter;
  });
  const auto words = fmt::format("{} m antennas", diameter);
  const auto width = [diameter](double lambda_over_d) { return lambda_over_d * units::speed_of_light / diameter; };
  if (found == known_antennas.end()) return {0, 0, width(usual_width), words};
  return {found->effective, found->blocked, width(found->width), words + " of " + telescope};
}

Tensor PrimaryBeam::power(const Tensor& distance, double frequency) const {
  check_positive(frequency, "a frequency in Hz");
  const auto sine = (distance.to(torch::kFloat64) * units::arcsec).sin().abs();
  if (diameter_ == 0) {
    const double sigma = width_ / frequency / units::fwhm_per_sigma;
    return (-0.5 * (sine / sigma).square()).exp().to(distance.scalar_type());
  }
  const auto x = sine * (units::pi * diameter_ * frequency / units::speed_of_light);
  const double part = blocked_ / diameter_, area = part * part;
  const auto amplitude = part > 0 ? (jinc(x) - area * jinc(part * x)) / (1 - area) : jinc(x);
  return amplitude.square().to(distance.scalar_type());
}

Tensor PrimaryBeam::power(const GridCoords& coords, const SkyOffset& pointing, double frequency) const {
  const auto sine = at::hypot(coords.sky_x() - pointing.east, coords.sky_y() - pointing.north) * units::arcsec;
  return power(sine.clamp_max(1).asin() / units::arcsec, frequency);
}

double PrimaryBeam::radius(double power, double frequency) const {
  constexpr double least = 0.01;  // side lobes have more than lower ones
  if (!(power >= least && power < 1)) throw ValueError(fmt::format("a power of {}; it must be from {} to below 1", power, least));
  check_positive(frequency, "a frequency in Hz");
  const auto at_distance = [&](double distance) {
    return this->power(at::tensor(distance, torch::kFloat64), frequency).item<double>();
  };
  // The main lobe falls all the way: outwards in steps that are small beside it, then between the last two.
  const double step =
      0.05 * units::speed_of_light / frequency / (diameter_ > 0 ? diameter_ : units::speed_of_light / width_) / units::arcsec;
  double inner = 0, outer = step;
  for (; at_distance(outer) > power; outer += step) inner = outer;
  constexpr int halvings = 50;
  for (int i = 0; i < halvings; ++i) {
    const double middle = 0.5 * (inner + outer);
    (at_distance(middle) > power ? inner : outer) = middle;
  }
  return outer;
}

}  // namespace mpol
