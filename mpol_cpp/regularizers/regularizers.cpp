#include <mpol_cpp/regularizers/regularizers.h>

#include <cmath>
#include <limits>

#include <ATen/ops/full.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/losses/sums.h>

namespace mpol::losses {
namespace {

void check_cube(const Tensor& cube, std::int64_t smallest) {
  if (cube.dim() < 3 || cube.size(-1) < smallest || cube.size(-2) < smallest) {
    throw ShapeError(fmt::format("the cube has shape {}; it must be (…, nchan, npix, npix) with at least {} x {} pixels",
                                 cube.sizes().vec(), smallest, smallest));
  }
}

/// In a dtype where it is 0, or has few digits, the gradient of a flat image is none.
void check_epsilon(double epsilon, torch::Dtype dtype) {
  if (!(epsilon > 0) || !std::isfinite(epsilon)) {
    throw ValueError(fmt::format("epsilon is {}; it must be finite and greater than 0", epsilon));
  }
  const double least = dtype == torch::kFloat32 ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  if (epsilon < least) {
    throw ValueError(fmt::format("epsilon is {:.3g}; {} needs at least {:.3g}: use a larger one{}", epsilon, c10::toString(dtype),
                                 least, dtype == torch::kFloat32 ? ", or float64" : ""));
  }
}

struct ForwardDifferences {
  Tensor along_m, along_l;  // (…, nchan, npix - 1, npix - 1)
};

ForwardDifferences forward_differences(const Tensor& cube) {
  const auto rows = cube.size(-2) - 1, columns = cube.size(-1) - 1;
  const auto corner = cube.narrow(-2, 0, rows).narrow(-1, 0, columns);
  return {cube.narrow(-2, 1, rows).narrow(-1, 0, columns) - corner, cube.narrow(-2, 0, rows).narrow(-1, 1, columns) - corner};
}

}  // namespace

Tensor sparsity(const Tensor& sky_cube, const Tensor& mask) {
  check_cube(sky_cube, 1);
  return detail::sum_cube(mask.defined() ? sky_cube.abs() * mask : sky_cube.abs());
}

Tensor tv_image(const Tensor& sky_cube, double epsilon) {
  check_cube(sky_cube, 2);
  check_epsilon(epsilon, sky_cube.scalar_type());
  const auto difference = forward_differences(sky_cube);
  return detail::sum_cube((difference.along_m.square() + difference.along_l.square() + epsilon).sqrt());
}

Tensor tv_channel(const Tensor& sky_cube, double epsilon) {
  check_cube(sky_cube, 1);
  check_epsilon(epsilon, sky_cube.scalar_type());
  const auto difference = sky_cube.narrow(-3, 1, sky_cube.size(-3) - 1) - sky_cube.narrow(-3, 0, sky_cube.size(-3) - 1);
  return detail::sum_cube((difference.square() + epsilon).sqrt());
}

Tensor tsv(const Tensor& sky_cube) {
  check_cube(sky_cube, 2);
  const auto difference = forward_differences(sky_cube);
  return detail::sum_cube(difference.along_m.square() + difference.along_l.square());
}

Tensor entropy(const Tensor& sky_cube, const Tensor& prior_intensity, double total_flux) {
  check_cube(sky_cube, 1);
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

Tensor entropy(const Tensor& sky_cube, double prior_intensity, double total_flux) {
  return entropy(sky_cube, at::full({}, prior_intensity, sky_cube.options().requires_grad(false)), total_flux);
}

Tensor edge_clamp(const Tensor& sky_cube) {
  check_cube(sky_cube, 1);
  const auto squares = [](const Tensor& edge) { return edge.square().to(torch::kFloat64).sum({-2, -1}); };
  return squares(sky_cube.select(-2, 0)) + squares(sky_cube.select(-2, -1)) + squares(sky_cube.select(-1, 0)) +
         squares(sky_cube.select(-1, -1));
}

}  // namespace mpol::losses
