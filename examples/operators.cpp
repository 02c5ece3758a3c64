// Operators are objects with an adjoint: visibilities of an image, and the image of their residual.
//
// usage: operators [visibilities.npz] [image.fits] [residual.fits]
// The image is one that `mpol image` or an example has made of the same visibilities.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ATen/ops/real.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

void run(const std::string& input, const std::string& image_file, const std::string& output) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto image = mpol::io::read_fits(image_file);  // (nchan, npix, npix) Jy/pixel
  const auto coords = mpol::GridCoords(image.cell_size, image.cube.size(-1));
  const auto sky = image.cube / coords.cell_area();  // Jy/arcsec^2

  const auto nufft = mpol::Nufft(coords, visibilities.baselines(), visibilities.nchan(), mpol::NufftOptions{1e-9});
  const auto model_visibilities = nufft->forward(sky);  // (nchan, nvis) Jy
  const auto residual = visibilities.data() - model_visibilities;
  const auto& weights = visibilities.weights();
  fmt::print("chi^2 {:.9g}\n", (weights * residual.abs().square()).sum().item<double>());

  // The gradient of chi^2 is -2 times the adjoint of the weighted residual: the natural dirty image of what is left, unscaled.
  const auto left = nufft->adjoint(weights * residual);
  const auto along_image = (left * sky).sum().item<double>();
  const auto along_data = at::real((weights * residual).conj() * model_visibilities).sum().item<double>();
  fmt::print("<A* r, I> {:.12g} = <r, A I> {:.12g}\n", along_image, along_data);

  // Scaled to the flux of a point source: the beam's peak is the sum of the weights.
  mpol::io::write_fits(output, left / (coords.cell_area() * weights.sum(-1, true).unsqueeze(-1)), coords,
                       mpol::io::FitsOptions().unit(mpol::io::FitsUnit::jy_per_beam));
  fmt::print("residual written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "exact_likelihood.fits",
        argc > 3 ? argv[3] : "residual.fits");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "operators: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
