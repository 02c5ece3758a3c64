// Simulates an observation: an array, when it looks where, a receiver, and a sky; and looks whether it came out as it should.
//
// usage: simulate_observation [visibilities.npz] [truth.fits] [figure.png]
#include <cstdio>
#include <cstdlib>
#include <string>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

constexpr double degree = mpol::units::degree;

void run(const std::string& output, const std::string& truth_file, const std::string& figure) {
  // An array, or read_array_configuration() of positions in a file.
  const auto array = mpol::alma_like_array(/*longest_baseline=*/1600, /*antennas=*/30);

  // When it looks where.
  const auto tracks = mpol::TrackOptions()
                          .declination(-24 * degree)
                          .hour_angle_start(-15 * degree)
                          .hour_angle_end(15 * degree)
                          .integration_time(600);
  const auto elevation = mpol::uv_tracks(array, tracks).elevation / degree;
  fmt::print("{} antennas, {} baselines up to {:.0f} m; elevation {:.1f} to {:.1f} degrees, at most {:.1f}\n", array.antennas(),
             array.baselines(), array.longest_baseline(), elevation.min().item<double>(), elevation.max().item<double>(),
             mpol::source_elevation(array.latitude, tracks.declination(), 0) / degree);

  // A sky: a tilted disc of two rings, off the phase centre. An image (nchan, npix, npix) of your own does as well.
  mpol::RingedDisc disc;
  disc.flux = 0.1;
  disc.offset_east = 0.1;
  disc.rings = {{.radius = 0.3, .width = 0.15, .brightness = 1}, {.radius = 0.7, .width = 0.2, .brightness = 0.5}};
  disc.crescent.reset();

  // The observation. Weights are those of the noise.
  const auto options = mpol::SimulationOptions()
                           .tracks(tracks)
                           .receiver(mpol::ReceiverOptions().zenith_opacity(0.1).channel_width(125e6))
                           .frequencies({230e9, 232e9})
                           .seed(1);
  const auto observed = mpol::simulate_observation(array, disc, options);
  mpol::io::write_npz(output, observed);
  const auto uv = mpol::summarize_uv(observed.baselines());
  fmt::print("{} channels of {} visibilities, {:.3g} to {:.3g} wavelengths\n", observed.nchan(), observed.nvis(), uv.shortest,
             uv.longest);

  // The truth as an image, and what is left of the data without it: noise as the weights say.
  const auto coords = mpol::GridCoords(/*cell_size=*/0.02, /*npix=*/256);
  const auto sky = mpol::render(disc, coords, options.frequencies());
  mpol::io::write_fits(truth_file, sky, coords, mpol::io::FitsOptions().frequencies(observed.frequencies()));
  const auto channels = mpol::ChannelMap::cube(observed.nchan());
  const auto noise = mpol::losses::residual_visibilities(coords, sky, observed, channels);
  const auto statistics = mpol::residual_statistics(noise.data() * noise.weights().sqrt());
  fmt::print("flux {:.6g} Jy at 230 GHz, {:.6g} in the image; noise of {:.4f} standard deviations, mean {:+.4f}\n",
             disc.flux_at(230e9), mpol::flux(sky, coords)[0].item<double>(), statistics.standard_deviation, statistics.mean);

  mpol::plot::VisibilityFigureOptions look;
  look.model = mpol::Visibilities(observed.baselines(), mpol::losses::predicted_visibilities(coords, sky, observed, channels),
                                  observed.weights().to(torch::kFloat64));
  if (mpol::plot::write_figure(figure, mpol::plot::visibility_page(observed, look))) fmt::print("figure written to {}\n", figure);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "observed.npz", argc > 2 ? argv[2] : "observed_truth.fits", argc > 3 ? argv[3] : "observed.png");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulate_observation: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
