#include "catch.h"

#include <cmath>
#include <string>

#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_ifft2.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/sky_unit.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/term.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/simulation/direct_visibilities.h>
#include <mpol_cpp/simulation/sky_model.h>

using namespace mpol;

// data/simulated_disc.npz, imaged as data/README.md says, against the sky it was made from.
namespace {

const std::string folder = MPOL_DATA_DIR;

/// Centre and geometry of the simulated disc, as in the command that made it.
RingedDisc simulated_disc() {
  RingedDisc disc;
  disc.offset_east = 0.1;
  disc.offset_north = -0.05;
  return disc;
}

/// An image seen with a Gaussian beam, (npix, npix).
Tensor seen_with(const Beam& beam, const Tensor& sky, const GridCoords& coords) {
  const auto frequency = at::fft_fftfreq(coords.npix(), coords.cell_size(), torch::TensorOptions(torch::kFloat64));
  const auto west = frequency.reshape({1, -1}), north = frequency.reshape({-1, 1});  // columns grow to the West
  const double sine = std::sin(beam.position_angle), cosine = std::cos(beam.position_angle);
  const auto along = -west * sine + north * cosine, across = west * cosine + north * sine;
  const double major = beam.major / units::fwhm_per_sigma, minor = beam.minor / units::fwhm_per_sigma;
  const auto taper = (-2 * units::pi * units::pi * (major * major * along.square() + minor * minor * across.square())).exp();
  return torch::real(at::fft_ifft2(at::fft_fft2(sky) * taper));
}

/// Position angle on the sky, degrees, of the light's asymmetry in the ring that holds the crescent, deprojected.
double crescent_position_angle(const Tensor& image, const GridCoords& coords, const RingedDisc& disc) {
  const auto x = coords.sky_x() - disc.offset_east, y = coords.sky_y() - disc.offset_north;
  const double sine = std::sin(disc.position_angle), cosine = std::cos(disc.position_angle);
  const auto along = x * sine + y * cosine, across = (x * cosine - y * sine) / std::cos(disc.inclination);
  const auto radius = (along.square() + across.square()).sqrt().clamp_min(1e-9);  // a pixel lies on the centre
  const auto in_ring = ((radius - disc.crescent->radius).abs() < disc.crescent->width).to(torch::kFloat64);
  const double a = (image * in_ring * along / radius).sum().item<double>();
  const double b = (image * in_ring * across / radius).sum().item<double>() * std::cos(disc.inclination);
  return std::atan2(a * sine + b * cosine, a * cosine - b * sine) / units::degree;
}

/// chi^2 / 2N of the loose visibilities, by direct sums.
double chi_squared_per_visibility(const Tensor& sky, const GridCoords& coords, const Visibilities& visibilities) {
  const auto model = direct_visibilities(sky, coords, visibilities.baselines(), visibilities.nchan());
  const auto residual = (visibilities.data().to(torch::kComplexDouble) - model).abs().square();
  return (visibilities.weights() * residual).sum().item<double>() / (2 * static_cast<double>(residual.numel()));
}

}  // namespace

TEST_CASE("the simulated data are those of their truth, with the noise of their weights", "[end_to_end]") {
  const auto visibilities = io::read_npz(folder + "/simulated_disc.npz");
  CHECK(visibilities.nchan() == 2);
  CHECK(visibilities.nchan() * visibilities.nvis() == 30702);
  const auto file = io::read_fits(folder + "/simulated_disc_truth.fits");
  const GridCoords coords(0.05, 192);
  REQUIRE(file.cell_size == Approx(0.05).epsilon(1e-6));
  const auto truth = io::brightness_of(file, folder);
  CHECK(truth.sizes() == at::IntArrayRef({2, 192, 192}));
  CHECK(truth[0].sum().item<double>() * coords.cell_area() == Approx(0.15).epsilon(1e-5));
  CHECK(chi_squared_per_visibility(truth, coords, visibilities) == Approx(1).margin(0.02));
}

TEST_CASE("the simulated disc is recovered", "[end_to_end]") {
  const auto visibilities = io::read_npz(folder + "/simulated_disc.npz");
  const GridCoords coords(0.05, 192);
  auto model = GriddedNet(GriddedNetOptions(coords).nchan(2));
  const auto objective = Objective(GriddedLikelihood(DataAverager(coords, visibilities).to_dataset()),
                                   {terms::sparsity(3e-3), terms::tv_image(3e-3)});
  const auto result = Trainer(model, objective, TrainOptions().learning_rate(0.3).epochs(500).dtype(torch::kFloat32)).fit();
  CHECK(result.loss.nll() > 0.9);  // chi^2 / 2N of the cells
  CHECK(result.loss.nll() < 1.1);

  const auto sky = model->make_sky().detach().to(torch::kFloat64);
  const double loose = chi_squared_per_visibility(sky, coords, visibilities);
  CHECK(loose > 0.9);
  CHECK(loose < 1.1);

  const auto truth = io::brightness_of(io::read_fits(folder + "/simulated_disc_truth.fits"), folder);
  const auto beams = DirtyImager(coords, visibilities).fitted_beam();
  const auto disc = simulated_disc();
  for (std::int64_t channel = 0; channel < 2; ++channel) {
    INFO("channel " << channel);
    const auto& beam = beams.at(static_cast<std::size_t>(channel)).value();
    const auto seen = seen_with(beam, sky[channel], coords), expected = seen_with(beam, truth[channel], coords);
    CHECK(((seen - expected).norm() / expected.norm()).item<double>() < 0.1);
    const double angle = crescent_position_angle(seen, coords, disc);
    CHECK(angle == Approx(crescent_position_angle(expected, coords, disc)).margin(3));
    CHECK(angle == Approx(disc.crescent->position_angle / units::degree).margin(10));
  }
}
