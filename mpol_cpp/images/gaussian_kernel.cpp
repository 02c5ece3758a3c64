#include <mpol_cpp/images/gaussian_kernel.h>

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/exp.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {

Tensor gaussian_kernel(const Beam& beam, double cell_size, double truncation) {
  const double sigma_major = beam.major / units::fwhm_per_sigma, sigma_minor = beam.minor / units::fwhm_per_sigma;
  const auto half = static_cast<std::int64_t>(std::ceil(truncation * sigma_major / cell_size));
  const auto offsets = cell_size * at::arange(-half, half + 1, torch::kFloat64);
  const auto north = offsets.unsqueeze(1), east = -offsets.unsqueeze(0);
  const double c = std::cos(beam.position_angle), s = std::sin(beam.position_angle);
  const auto along_minor = (east * c - north * s) / sigma_minor, along_major = (east * s + north * c) / sigma_major;
  const auto kernel = at::exp(-0.5 * (along_minor.square() + along_major.square()));
  return kernel / kernel.sum();
}

void check_beams(const std::vector<Beam>& beams, const GridCoords& coords) {
  const double width = coords.cell_size() * static_cast<double>(coords.npix());
  if (beams.empty()) throw ValueError("there is no beam to convolve with; give one, or one for each channel");
  for (const auto& beam : beams) {
    if (!std::isfinite(beam.major) || !std::isfinite(beam.position_angle) || !(beam.minor > 0) || !(beam.minor <= beam.major)) {
      throw ValueError(fmt::format("the beam is {} x {} arcsec at {} degrees; its axes must be finite with 0 < minor <= major",
                                   beam.major, beam.minor, beam.position_angle / units::degree));
    }
    if (beam.major > width) {
      throw ValueError(
          fmt::format("the beam's major axis is {} arcsec, but the image only {} arcsec wide: choose a beam that is "
                      "narrower",
                      beam.major, width));
    }
  }
}

void check_beams_fit(std::int64_t beams, const Tensor& sky, const GridCoords& coords) {
  if (sky.dim() < 3 || sky.size(-1) != coords.npix() || sky.size(-2) != coords.npix()) {
    throw ShapeError(
        fmt::format("the image has shape {}; it must be (…, nchan, {}, {})", sky.sizes().vec(), coords.npix(), coords.npix()));
  }
  if (beams != 1 && beams != sky.size(-3)) {
    throw ShapeError(fmt::format("there are {} beams for {} channels; give one, or one for each channel", beams, sky.size(-3)));
  }
}

}  // namespace mpol
