// A star that no image resolves in front of a disc: the star as a point of free flux and place, the disc as an image, fitted
// together.
//
// usage: star_and_disc [image.fits] [iterations]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

/// What the array observes: a star of 20 mJy, and a ring of 0.1 Jy about it.
mpol::Visibilities observe() {
  const auto array = mpol::alma_like_array(/*longest_baseline=*/1600, /*antennas=*/20);
  mpol::RingedDisc empty;
  empty.rings = {{.radius = 0.6, .width = 0.2, .brightness = 1}};
  empty.crescent.reset();
  empty.flux = 0.1;
  const auto ring = mpol::simulate_observation(array, empty, mpol::SimulationOptions().seed(1));
  const auto star = mpol::PointSource(/*flux=*/0.02, /*east=*/0.03, /*north=*/-0.02)->loose(ring.baselines()).detach();
  return {ring.baselines(), ring.data() + star.to(ring.data().scalar_type()), ring.weights()};
}

void run(const std::string& output, int epochs) {
  const auto visibilities = observe();
  const auto coords = mpol::GridCoords(/*cell_size=*/0.05, /*npix=*/64);

  // A first guess of the star; the likelihood shares its parameters.
  auto star = mpol::PointSource(/*flux=*/0.01, /*east=*/0.0, /*north=*/0.0);
  auto likelihood = mpol::SourceLikelihood(coords, visibilities, mpol::ChannelMap::continuum(visibilities.nchan()),
                                           std::vector<std::shared_ptr<mpol::VisibilityModel>>{star.ptr()});
  // The image could show the star as well: total variation makes a peak of one pixel dear.
  const auto objective = mpol::Objective(likelihood, {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(1e-3)});
  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords));
  const auto options = mpol::TrainOptions().optimizer(mpol::OptimizerKind::lbfgs).epochs(epochs);
  const auto result = mpol::Trainer(model, objective, options).fit();

  const auto found = star->model();
  const auto sky = model->make_sky().detach();
  fmt::print("star: {:.2f} mJy at {:+.4f}\" East, {:+.4f}\" North; image: {:.2f} mJy; loss {:.6g}\n", 1e3 * found.flux,
             found.geometry.offset_east, found.geometry.offset_north, 1e3 * mpol::flux(sky, coords)[0].item<double>(),
             result.loss.total());
  mpol::io::write_fits(output, sky, coords);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 2 ? std::stoi(argv[2]) : 150;
    if (epochs < 1) throw mpol::ValueError(fmt::format("epochs is {}; it must be at least 1", epochs));
    run(argc > 1 ? argv[1] : "star_and_disc.fits", epochs);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "star_and_disc: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
