// A cube: two channels of one disc, each alone and with total variation between them, beside the truth.
//
// usage: cube [visibilities.npz] [truth.fits] [cube.fits] [figure.png]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

using torch::Tensor;

/// How far apart two cubes are, relative to the second.
double distance(const Tensor& a, const Tensor& b) { return ((a - b).norm() / b.norm()).item<double>(); }

void run(const std::string& input, const std::string& truth_file, const std::string& output, const std::string& figure) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.05, /*npix=*/192);

  // Image channel c is made of data channel c; ChannelMap::continuum would put all of them into one image.
  const auto channels = mpol::ChannelMap::cube(visibilities.nchan());
  const auto likelihood = mpol::ExactLikelihood(coords, visibilities, channels);
  const double unit = mpol::noise_unit(coords, visibilities, channels.nchan(), likelihood->normalizer()).slope;
  const auto start = mpol::softplus_mapping().inverse(mpol::auto_start(coords, visibilities, channels));

  // Each channel is smoothed by its own beam before it is compared with the truth, which has more detail than any image.
  const auto beams = mpol::DirtyImager(coords, visibilities).fitted_beam();
  const std::vector<mpol::Beam> resolution = {beams.at(0).value(), beams.at(1).value()};
  const auto truth = mpol::restore(mpol::io::read_fits(truth_file).cube / coords.cell_area(), coords, resolution);

  Tensor cube;
  for (const double c : {0.0, 1.0}) {
    auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(start).dtype(torch::kFloat32));
    const auto objective = mpol::Objective(
        likelihood, {mpol::terms::sparsity(unit), mpol::terms::tv_image(unit), mpol::terms::tv_channel(c * unit)});
    mpol::Trainer(model, objective, mpol::TrainOptions().learning_rate(0.1).epochs(200)).fit();
    cube = model->make_sky().detach().to(torch::kFloat64);
    const auto restored = mpol::restore(cube, coords, resolution);
    const auto flux = mpol::flux(cube, coords);
    fmt::print("tv_channel {} U: {:.4f} from the truth, channels {:.4f} apart; {:.4f} and {:.4f} Jy\n", c,
               distance(restored, truth), distance(restored[1], restored[0]), flux[0].item<double>(), flux[1].item<double>());
  }
  fmt::print("the truth's channels are {:.4f} apart\n", distance(truth[1], truth[0]));

  mpol::io::write_fits(output, cube, coords,
                       mpol::io::FitsOptions().frequencies(visibilities.frequencies()).observation(visibilities.observation()));
  mpol::plot::ImageFigureOptions look;
  for (const auto& hertz : visibilities.frequencies().unbind()) look.frequencies.push_back(hertz.item<double>());
  look.half_width = 1.6;
  if (mpol::plot::write_figure(figure, mpol::plot::image_page(cube, coords, look))) fmt::print("figure written to {}\n", figure);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/simulated_disc.npz", argc > 2 ? argv[2] : "data/simulated_disc_truth.fits",
        argc > 3 ? argv[3] : "cube.fits", argc > 4 ? argv[4] : "cube.png");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cube: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
