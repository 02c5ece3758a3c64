// From a measurement set to a radial profile: data, grid, weights, image, geometry, profile; nothing is chosen by hand.
//
// usage: workflow [observation.ms or visibilities.npz] [image.fits] [figure.png]
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

/// The samples of all channels of all windows; flagged ones, autocorrelations and those without weight are left out.
mpol::Visibilities read(const std::string& input) {
  if (!mpol::io::is_measurement_set(input)) return mpol::io::read_npz(input);
  const auto reader = mpol::io::open_measurement_set(input);  // options: field, windows, column, polarisation, …
  auto collected = mpol::io::collect_samples(*reader);
  fmt::print("{}; {} samples left out\n", reader->shape().column, collected.dropped.total());
  return collected.visibilities;
}

/// Cells of a fifth of the finest fringe, and a field that holds the flux, about the phase centre.
mpol::GridCoords grid_of(const mpol::Visibilities& visibilities) {
  const auto grid = mpol::choose_grid(visibilities, {}, {}, mpol::SkyOffset());
  fmt::print("cells of {}\": {}\n{} pixels: {}\n", grid.coords.cell_size(), grid.cell_size_reason, grid.coords.npix(),
             grid.npix_reason);
  return grid.coords;
}

/// Scatter in uv cells, once the source is taken out, says whether the weights are right.
mpol::Visibilities with_true_weights(const mpol::Visibilities& visibilities, const mpol::GridCoords& coords) {
  const auto noise =
      mpol::without_source(visibilities, mpol::source_field(coords, visibilities), mpol::UsualImageOptions().tolerance(5e-3));
  const auto statistics = mpol::residual_statistics(mpol::cell_residuals(coords, noise));
  fmt::print("weights: to be multiplied by {:.3f}\n", statistics.weight_factor());
  return mpol::scale_weights(visibilities, at::tensor(statistics.weight_factor()));
}

void run(const std::string& input, const std::string& output, const std::string& figure) {
  const auto raw = read(input);
  const auto channels = mpol::ChannelMap::continuum(raw.nchan());
  fmt::print("data: {} channels of {} visibilities\n", raw.nchan(), raw.nvis());
  const auto coords = grid_of(raw);
  const auto visibilities = with_true_weights(raw, coords);

  // The image of `mpol image`: exact likelihood, priors in units of the noise, fitted until it has converged.
  const auto sky = mpol::usual_image(coords, visibilities, channels);
  const auto chi_squared = mpol::losses::loose_chi_squared(coords, sky, visibilities, channels);
  fmt::print("image: {:.4f} Jy; chi^2 {:.4f} of each visibility\n", mpol::flux(sky, coords).sum().item<double>(),
             chi_squared / static_cast<double>(2 * raw.nchan() * raw.nvis()));
  mpol::io::write_fits(output, sky, coords, mpol::io::FitsOptions().observation(visibilities.observation()));

  // How the disc lies on the sky, from the visibilities; its profile in its own plane, from the image.
  const auto disc = mpol::fit_geometry(visibilities).geometry;
  fmt::print("geometry: inclination {:.1f}, position angle {:.1f} degrees; centre {:+.3f}\" East, {:+.3f}\" North\n",
             disc.inclination / mpol::units::degree, disc.position_angle / mpol::units::degree, disc.offset_east,
             disc.offset_north);
  const auto profile = mpol::radial_i(sky, coords, disc, mpol::RadialImageOptions().pixels(mpol::RingPixels::by_area));
  const auto ring = profile.mean[0].argmax();
  fmt::print("profile: {:.3f} Jy/arcsec^2 at {:.2f}\"\n", profile.mean[0].index_select(0, ring).item<double>(),
             profile.radius.index_select(0, ring).item<double>());
  const auto page = mpol::plot::profile_page(profile, "Jy/arcsec²");
  if (mpol::plot::write_figure(figure, page)) fmt::print("figure written to {}\n", figure);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "observed.npz", argc > 2 ? argv[2] : "workflow.fits", argc > 3 ? argv[3] : "profile.png");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "workflow: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
