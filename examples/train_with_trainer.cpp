// The same image left to the trainer: an objective of a likelihood and regularisers, and one call.
//
// usage: train_with_trainer [visibilities.npz] [image.fits] [epochs]
#include <cstdio>
#include <cstdlib>
#include <string>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

void run(const std::string& input, const std::string& output, int epochs) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto averager =
      mpol::DataAverager(coords, visibilities, mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::warn));

  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).nchan(visibilities.nchan()));
  const auto objective =
      mpol::Objective(mpol::GriddedLikelihood(averager.to_dataset()), {mpol::terms::sparsity(1e-4), mpol::terms::tv_image(2e-4)});
  const auto options =
      mpol::TrainOptions().learning_rate(0.3).epochs(epochs).device(mpol::select_device()).dtype(torch::kFloat32);
  const auto result = mpol::Trainer(model, objective, options).fit();

  fmt::print("loss {:.6g} after {} epochs in {:.2f} s, {} step ({}); stopped by: {}\n", result.loss.total(), result.epochs,
             result.seconds, mpol::to_string(result.step), result.step_reason, mpol::to_string(result.stop_reason));
  mpol::io::write_fits(output, model->make_sky(), coords);
  fmt::print("image written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 3 ? std::stoi(argv[3]) : 500;
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "train_with_trainer.fits", epochs);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_with_trainer: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
