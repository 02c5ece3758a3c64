// The likelihood of the visibilities themselves, at a cost that does not depend on their number.
//
// usage: exact_likelihood [visibilities.npz] [image.fits] [epochs]
#include <cstdio>
#include <cstdlib>
#include <string>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

void run(const std::string& input, const std::string& output, int epochs) {
  const auto device = mpol::select_device();
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);

  // Built once; the visibilities are not needed again.
  auto likelihood = mpol::ExactLikelihood(coords, visibilities, mpol::ChannelMap::cube(visibilities.nchan()));
  likelihood->to(device);
  fmt::print("{} visibilities in {:.1f} MiB\n", likelihood->visibilities_count(),
             static_cast<double>(likelihood->memory_bytes()) / 0x1p20);

  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords).nchan(visibilities.nchan()).dtype(torch::kFloat64));
  const auto objective = mpol::Objective(likelihood, {mpol::terms::sparsity(1e-4), mpol::terms::tv_image(2e-4)});
  const auto result = mpol::Trainer(model, objective, mpol::TrainOptions().epochs(epochs).device(device)).fit();

  // nll = chi^2 / (2 n) with the number n of occupied cells, as for every likelihood.
  const auto chi_squared = result.loss.nll() * 2 * likelihood->normalizer();
  fmt::print("chi^2 per visibility {:.9g} after {} epochs\n",
             chi_squared / (2 * static_cast<double>(likelihood->visibilities_count())), result.epochs);
  mpol::io::write_fits(output, model->make_sky(), coords);
  fmt::print("image written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 3 ? std::stoi(argv[3]) : 500;
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "exact_likelihood.fits", epochs);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exact_likelihood: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
