#include <mpol_cpp/simulation/thermal_noise.h>

#include <cmath>
#include <random>

#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/sin.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr double boltzmann = 1.380649e-23;  // J/K (exact)
constexpr double jansky = 1e-26;            // W m^-2 Hz^-1

void require_positive(double value, const char* name, const char* unit) {
  if (!(value > 0) || !std::isfinite(value)) throw ValueError(fmt::format("{} {} {}: it must be positive", name, value, unit));
}

void require_fraction(double value, const char* name) {
  if (!(value > 0 && value <= 1)) throw ValueError(fmt::format("{} {}: it lies above 0 and up to 1", name, value));
}

void check_options(const ReceiverOptions& options) {
  require_positive(options.system_temperature(), "system temperature", "K");
  require_positive(options.channel_width(), "channel width", "Hz");
  require_fraction(options.antenna_efficiency(), "antenna efficiency");
  require_fraction(options.correlator_efficiency(), "correlator efficiency");
  if (!(options.zenith_opacity() >= 0) || !std::isfinite(options.zenith_opacity()))
    throw ValueError(fmt::format("zenith opacity {}: it must be 0 or positive", options.zenith_opacity()));
  if (options.polarizations() != 1 && options.polarizations() != 2)
    throw ValueError(fmt::format("{} polarisations: 1 or 2", options.polarizations()));
}

/// Uniform in (0, 1], with the 53 bits of a double.
double uniform(std::mt19937_64& generator) { return (static_cast<double>(generator() >> 11) + 1) * 0x1p-53; }

}  // namespace

Tensor thermal_noise_sigma(const Tensor& elevation, double diameter, double integration_time, const ReceiverOptions& options) {
  check_options(options);
  require_positive(diameter, "dish diameter", "m");
  require_positive(integration_time, "integration time", "s");
  const double area = units::pi * diameter * diameter / 4;
  const double flux_density = 2 * boltzmann * options.system_temperature() / (options.antenna_efficiency() * area) / jansky;
  const double samples = 2 * options.channel_width() * integration_time * static_cast<double>(options.polarizations());
  const double zenith_sigma = flux_density / (options.correlator_efficiency() * std::sqrt(samples));
  const auto airmass = 1 / at::sin(elevation);
  return zenith_sigma * at::exp(options.zenith_opacity() * (airmass - 1));
}

Tensor standard_complex_noise(std::int64_t count, std::uint64_t seed) {
  auto noise = at::empty({count}, torch::kComplexDouble);
  auto* values = noise.mutable_data_ptr<c10::complex<double>>();
  std::mt19937_64 generator(seed);
  for (std::int64_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(uniform(generator)));
    const double angle = 2 * units::pi * uniform(generator);
    values[i] = {radius * std::cos(angle), radius * std::sin(angle)};
  }
  return noise;
}

}  // namespace mpol
