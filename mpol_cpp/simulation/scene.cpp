#include <mpol_cpp/simulation/scene.h>

#include <array>
#include <cmath>
#include <utility>

#include <ATen/ops/atan2.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_ifft2.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/log.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/simulation/sky_gaussian.h>
#include <mpol_cpp/simulation/thermal_noise.h>

namespace mpol {
namespace {

constexpr std::array<std::pair<Scene, const char*>, 3> names = {
    {{Scene::blobs, "blobs"}, {Scene::nebula, "nebula"}, {Scene::galaxy, "galaxy"}}};

/// Uniform numbers below 1, the same on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : values_(standard_complex_noise(capacity, seed)) {}

  double between(double low, double high) {
    const auto value = values_.const_data_ptr<c10::complex<double>>()[next_++ % capacity];
    return low + (high - low) * (0.5 + std::atan2(value.imag(), value.real()) / (2 * units::pi));
  }
  /// Evenly in the logarithm.
  double over(double low, double high) { return low * std::pow(high / low, between(0, 1)); }

 private:
  static constexpr std::int64_t capacity = 1024;
  Tensor values_;
  std::int64_t next_ = 0;
};

/// Offsets of the pixels in widths of the field, East and North.
struct Places {
  explicit Places(const GridCoords& coords)
      : east(coords.sky_x() / (coords.cell_size() * static_cast<double>(coords.npix()))),
        north(coords.sky_y() / (coords.cell_size() * static_cast<double>(coords.npix()))) {}
  Tensor east, north;
};

/// A Gaussian random field whose amplitudes fall as |k|^-1.6: mean 0, standard deviation 1.
Tensor turbulence(std::int64_t npix, std::uint64_t seed) {
  const auto white = at::real(standard_complex_noise(npix * npix, seed)).reshape({npix, npix});
  const auto k = at::fft_fftfreq(npix, 1.0, torch::TensorOptions(torch::kFloat64));
  auto wave_number = at::hypot(k.unsqueeze(1), k.unsqueeze(0));
  wave_number[0][0] = 1;  // the mean, which is taken off anyhow
  const auto field = at::real(at::fft_ifft2(at::fft_fft2(white) * wave_number.pow(-1.6)));
  return (field - field.mean()) / field.std();
}

Tensor blobs(const Places& at, std::uint64_t seed) {
  Draws draws(seed);
  auto image = at::zeros_like(at.east);
  for (int i = 0; i < 10; ++i) {
    SkyGaussian blob;
    blob.sigma_major = draws.over(0.02, 0.1) / units::fwhm_per_sigma;
    blob.sigma_minor = blob.sigma_major * draws.between(0.4, 1);
    blob.position_angle = draws.between(0, units::pi);
    const double distance = 0.3 * std::sqrt(draws.between(0, 1)), direction = draws.between(0, 2 * units::pi);
    blob.offset_east = distance * std::cos(direction);
    blob.offset_north = distance * std::sin(direction);
    blob.peak = draws.over(0.1, 1) / (blob.sigma_major * blob.sigma_minor);
    image += blob.brightness(at.east, at.north);
  }
  return image;
}

Tensor nebula(const Places& at, std::uint64_t seed) {
  const auto radius = at::hypot(at.east, at.north);
  return at::exp(1.1 * turbulence(radius.size(0), seed)) * at::exp(-(radius / 0.25).pow(4));
}

Tensor galaxy(const Places& at, std::uint64_t seed) {
  Draws draws(seed);
  const double position_angle = draws.between(0, units::pi), inclination = draws.between(25, 60) * units::degree;
  const double pitch = draws.between(12, 25) * units::degree, phase = draws.between(0, 2 * units::pi);
  const double s = std::sin(position_angle), c = std::cos(position_angle);
  const auto along = at.east * s + at.north * c, across = (at.east * c - at.north * s) / std::cos(inclination);
  const auto radius = at::hypot(along, across).clamp_min(1e-3), azimuth = at::atan2(across, along);
  const auto arms = at::exp(3 * (at::cos(2 * (azimuth - at::log(radius / 0.05) / std::tan(pitch) - phase)) - 1));
  auto image = at::exp(-radius / 0.09) * (0.4 + 2 * arms) * at::exp(0.5 * turbulence(radius.size(0), seed + 1));
  image += 3 * at::exp(-0.5 * (radius / 0.02).square());
  for (int i = 0; i < 40; ++i) {
    const double distance = 0.06 + 0.16 * draws.between(0, 1);
    const double turn = std::log(distance / 0.05) / std::tan(pitch) + phase + (i % 2) * units::pi + draws.between(-0.2, 0.2);
    const double x = distance * std::cos(turn), y = distance * std::sin(turn) * std::cos(inclination);
    SkyGaussian clump;
    clump.offset_east = x * s + y * c;
    clump.offset_north = x * c - y * s;
    clump.sigma_major = clump.sigma_minor = draws.over(0.004, 0.01);
    clump.peak = draws.over(0.2, 2) * std::exp(-distance / 0.15);
    image += clump.brightness(at.east, at.north);
  }
  return image * at::exp(-(radius / 0.3).pow(6));
}

Tensor shape_of(Scene scene, const Places& places, std::uint64_t seed) {
  switch (scene) {
    case Scene::blobs:
      return blobs(places, seed);
    case Scene::nebula:
      return nebula(places, seed);
    case Scene::galaxy:
      return galaxy(places, seed);
  }
  throw ValueError("no such scene");
}

}  // namespace

std::vector<std::string> scene_names() {
  std::vector<std::string> result;
  for (const auto& [scene, name] : names) result.emplace_back(name);
  return result;
}

Scene scene_by_name(const std::string& name) {
  std::string known;
  for (const auto& [scene, own] : names) {
    if (name == own) return scene;
    known += known.empty() ? own : std::string(", ") + own;
  }
  throw ValueError(fmt::format("scene {}: there are {}", name, known));
}

Tensor render(Scene scene, const GridCoords& coords, double flux, std::uint64_t seed) {
  if (!(flux > 0) || !std::isfinite(flux)) throw ValueError(fmt::format("flux {} Jy: it must be positive", flux));
  const auto image = shape_of(scene, Places(coords), seed);
  return image * (flux / (image.sum().item<double>() * coords.cell_area()));
}

}  // namespace mpol
