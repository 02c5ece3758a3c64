// MPoL's GPU tutorial: the same six steps on the CPU and, where there is one, on a GPU, both timed and compared.
//
// usage: gpu_tutorial [visibilities.npz] [image.fits] [epochs]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <torch/optim/adam.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

/// What a fit took, and what it gave.
struct Fit {
  double seconds = 0, loss = 0;
  torch::Tensor sky;  // (nchan, npix, npix), Jy/arcsec^2
};

/// The six steps. Only the fourth one moves anything.
Fit fit_on(torch::Device device, const mpol::Visibilities& visibilities, const mpol::GridCoords& coords, int epochs) {
  // 1. The data, averaged on the uv cells of the grid.
  const auto averager =
      mpol::DataAverager(coords, visibilities, mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off));
  auto dataset = averager.to_dataset();
  dataset->to(torch::kFloat32);

  // 2. The model.
  auto model = mpol::SimpleNet(mpol::SimpleNetOptions(coords).nchan(dataset->nchan()));

  // 3. The loss.
  const auto loss_of = [&] {
    const auto model_visibilities = model->forward();  // packed cube, Jy
    const auto sky = model->sky_cube();                // (nchan, npix, npix), Jy/arcsec^2
    return mpol::losses::nll_gridded(model_visibilities, dataset) + 1e-4 * mpol::losses::sparsity(sky) +
           1e-4 * mpol::losses::tv_image(sky);
  };

  // 4. Both to the device.
  dataset->to(device);
  model->to(device);

  // 5. The optimiser, once the parameters are where they will stay.
  auto optimizer = torch::optim::Adam(model->parameters(), 0.5);

  // 6. The loop.
  mpol::DeviceTimer timer(device);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    optimizer.zero_grad();
    loss_of().backward();
    optimizer.step();
  }
  Fit fit;
  fit.seconds = timer.seconds();  // waits for the device
  fit.loss = loss_of().item<double>();
  fit.sky = model->sky_cube().detach().to(torch::kCPU);
  return fit;
}

void run(const std::string& input, const std::string& output, int epochs) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);

  std::vector<torch::Device> devices = {torch::kCPU};
  if (mpol::no_gpu_reason().empty()) devices.push_back(mpol::select_device());
  else fmt::print("no GPU: {}\n", mpol::no_gpu_reason());

  std::vector<Fit> fits;
  for (const auto device : devices) {
    fits.push_back(fit_on(device, visibilities, coords, epochs));
    const auto& fit = fits.back();
    fmt::print("{}: {} epochs in {:.2f} s, {:.2f} ms each; loss {:.6g}\n", device.str(), epochs, fit.seconds,
               1e3 * fit.seconds / epochs, fit.loss);
  }
  if (fits.size() > 1) {
    fmt::print("the GPU takes {:.1f} times less; the images differ by {:.2g} of the peak\n", fits[0].seconds / fits[1].seconds,
               ((fits[0].sky - fits[1].sky).abs().max() / fits[0].sky.max()).item<double>());
  }
  mpol::io::write_fits(output, fits.back().sky, coords);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 3 ? std::stoi(argv[3]) : 300;
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "gpu_tutorial.fits", epochs);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_tutorial: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
