// Two executions of one observation, the second one off in position, flux scale and weights: what is off is fitted together with
// the image, by L-BFGS, in chunks of a memory budget.
//
// usage: joint_blocks [image.fits] [MiB]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

/// One execution: a ring of 0.1 Jy, at (east, north) arcsec, its flux scale and its weights false by so much.
mpol::Visibilities observe(double east, double north, double amplitude, double weight_scale, std::uint64_t seed) {
  mpol::RingedDisc disc;
  disc.rings = {{.radius = 0.6, .width = 0.2, .brightness = 1}};
  disc.crescent.reset();
  disc.flux = 0.1 * amplitude;
  disc.offset_east = east;
  disc.offset_north = north;
  const auto array = mpol::alma_like_array(/*longest_baseline=*/1600, /*antennas=*/20);
  const auto observed = mpol::simulate_observation(array, disc, mpol::SimulationOptions().seed(seed));
  return {observed.baselines(), observed.data(), observed.weights() / weight_scale};
}

void run(const std::string& output, double mebibytes) {
  const auto coords = mpol::GridCoords(/*cell_size=*/0.05, /*npix=*/64);
  const auto channels = mpol::ChannelMap::continuum(1);
  std::vector<mpol::DataBlock> blocks;
  const auto first = observe(0, 0, 1, 1, 1);  // what the other one is compared with
  blocks.emplace_back(first, channels);
  blocks.emplace_back(observe(0.03, -0.02, 1.1, 2, 2), channels);
  blocks.back().fit_shift().fit_amplitude().fit_weight_scale();

  auto likelihood =
      mpol::BlockLikelihood(coords, blocks, mpol::BlockLikelihoodOptions().memory_budget(mebibytes * 0x1p20).on_host(true));
  const auto objective = mpol::Objective(likelihood, {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(1e-3)});
  // The gains begin at none, and the image at that of the first execution alone.
  const auto start = mpol::softplus_mapping().inverse(mpol::usual_image(coords, first, channels).clamp_min(1e-4));
  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(start));
  const auto options = mpol::TrainOptions().optimizer(mpol::OptimizerKind::lbfgs).epochs(30);
  const auto result = mpol::Trainer(model, objective, options).fit();

  const auto shift = likelihood->shift(1);
  const auto sky = model->make_sky().detach();
  fmt::print("second execution: {:+.4f}\" East, {:+.4f}\" North, {:.4f} times as bright, weights too small by {:.3f}\n",
             shift[0].item<double>(), shift[1].item<double>(), likelihood->amplitude(1), likelihood->weight_scale(1));
  fmt::print("image: {:.2f} mJy; loss {:.5g}; chunks of {} samples, of {}\n", 1e3 * mpol::flux(sky, coords)[0].item<double>(),
             result.loss.total(), likelihood->chunk(), likelihood->samples());
  mpol::io::write_fits(output, sky, coords);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const double mebibytes = argc > 2 ? std::stod(argv[2]) : 1;
    if (!(mebibytes > 0)) throw mpol::ValueError(fmt::format("a budget of {} MiB; it must be above 0", mebibytes));
    run(argc > 1 ? argv[1] : "joint_blocks.fits", mebibytes);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "joint_blocks: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
