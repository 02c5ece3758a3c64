#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace benchmarks {

/// Noisy visibilities of a Gaussian source seen by a 43-antenna spiral array over a range of hour angles; the longest
/// baseline reaches `fill` of the grid's half-width. All channels share the baselines. Other seeds are other hours of the same
/// array.
inline mpol::Visibilities synthetic_observation(const mpol::GridCoords& coords, std::int64_t nchan, std::int64_t nvis,
                                                torch::Dtype dtype = torch::kFloat64, double fill = 0.4, std::uint64_t seed = 1) {
  constexpr int antennas = 43;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  std::vector<double> east(antennas), north(antennas);
  for (int i = 0; i < antennas; ++i) {
    const double radius = std::pow(0.03 + 0.97 * i / (antennas - 1), 1.5);
    const double angle = 2 * mpol::units::pi * (i % 3) / 3 + 2 * radius + 0.1 * normal(random);
    east[static_cast<std::size_t>(i)] = radius * std::cos(angle);
    north[static_cast<std::size_t>(i)] = radius * std::sin(angle);
  }
  if (seed != 1) random.seed(seed);
  const double declination = -30 * mpol::units::degree, latitude = -23 * mpol::units::degree;
  std::vector<double> u(static_cast<std::size_t>(nvis)), v(u.size());
  double largest = 0;
  for (std::size_t k = 0; k < u.size(); ++k) {
    const auto i = static_cast<std::size_t>(uniform(random) * antennas);
    const auto j = (i + 1 + static_cast<std::size_t>(uniform(random) * (antennas - 1))) % antennas;
    const double e = east[i] - east[j], n = north[i] - north[j], hour = 1.6 * uniform(random) - 0.8;
    const double x = -n * std::sin(latitude), z = n * std::cos(latitude);
    u[k] = std::sin(hour) * x + std::cos(hour) * e;
    v[k] = -std::sin(declination) * (std::cos(hour) * x - std::sin(hour) * e) + std::cos(declination) * z;
    largest = std::max({largest, std::abs(u[k]), std::abs(v[k])});
  }
  const double scale = fill * coords.max_uv() / largest;
  const double size = 0.12 * static_cast<double>(coords.npix()) * coords.dl();
  const auto uu = at::tensor(at::ArrayRef<double>(u)) * scale, vv = at::tensor(at::ArrayRef<double>(v)) * scale;
  const auto amplitude = (-2 * std::pow(mpol::units::pi * size, 2) * (uu.square() + vv.square())).exp();
  const auto weights = (at::rand({nchan, nvis}, torch::kFloat64) * 1.5 + 0.5) * 1e4;
  const auto noise = at::randn({nchan, nvis, 2}, torch::kFloat64) / weights.sqrt().unsqueeze(-1);
  const auto data = amplitude + at::view_as_complex(noise);
  return {mpol::Baselines::in_lambda(uu.to(dtype), vv.to(dtype)), data.to(c10::toComplexType(dtype)), weights.to(dtype)};
}

}  // namespace benchmarks
