#include <mpol_cpp/regularizers/entropy.h>

#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/regularizers/base/cube.h>
#include <mpol_cpp/regularizers/base/regularizer.h>

namespace mpol {

at::Tensor losses::entropy(const at::Tensor& sky_cube, const at::Tensor& prior_intensity, double total_flux) {
  detail::check_sky_cube(sky_cube, 1);
  if (!(total_flux > 0)) throw ValueError(fmt::format("total_flux is {} Jy; it must be greater than 0", total_flux));
  if (!(prior_intensity > 0).all().item<bool>()) {
    throw ValueError(fmt::format("prior_intensity has a minimum of {:.6g} Jy/arcsec^2; it must be greater than 0",
                                 prior_intensity.min().item<double>()));
  }
  const auto smallest = sky_cube.detach().min().item<double>();
  if (smallest < 0) {
    throw DataError(
        fmt::format("the image has a pixel of {:.6g} Jy/arcsec^2, but entropy needs intensities >= 0: use a "
                    "positive pixel mapping",
                    smallest));
  }
  // I ln(J/p) with J = max(I, floor) has the right value everywhere but lacks the derivative of ln J below the floor.
  const auto floored = sky_cube.clamp_min(entropy_gradient_floor);
  const auto below = at::where(sky_cube < entropy_gradient_floor, sky_cube, 0.0);
  return detail::sum_cube(sky_cube * (floored / prior_intensity).log() + (below - below.detach())) / total_flux;
}

at::Tensor losses::entropy(const at::Tensor& sky_cube, double prior_intensity, double total_flux) {
  return entropy(sky_cube, at::full({}, prior_intensity, sky_cube.options().requires_grad(false)), total_flux);
}

const Regularizer& regularizers::Entropy::descriptor() {
  static const Regularizer own{
      .name = "entropy",
      .help = "Entropy relative to a flat prior",
      .settings = {{.name = "prior_intensity",
                    .value = settings[0],
                    .option = "entropy-prior",
                    .unit = "JY_PER_ARCSEC2",
                    .help = "Prior intensity of the entropy"},
                   {.name = "total_flux",
                    .value = settings[1],
                    .option = "entropy-flux",
                    .unit = "ZETA",
                    .help = "Total flux by which the entropy is divided"}},
      .noise_scale = NoiseScale::slope,
      .scaled_by = 1,
      .waits_for_device = true,  // looks whether a pixel is negative
      .least_pixel = 1e-10,
      .recorded_when_off = true,
      .function = of_sky([](const at::Tensor& sky, const auto& with) { return losses::entropy(sky, with[0], with[1]); }),
  };
  return own;
}

}  // namespace mpol
