// The training loop by hand: the six steps of MPoL's GPU tutorial, on the GPU when there is one and on the CPU when not.
//
// usage: simple_net [visibilities.npz] [image.fits] [epochs]
#include <cstdio>
#include <cstdlib>
#include <string>

#include <torch/optim/adam.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

void run(const std::string& input, const std::string& output, int epochs) {
  // 1. A device: a usable GPU, else the CPU, said once.
  const auto device = mpol::select_device();

  // 2. The data, averaged on the uv cells of a grid.
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto averager =
      mpol::DataAverager(coords, visibilities, mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::warn));
  auto dataset = averager.to_dataset();
  dataset->to(torch::kFloat32);

  // 3. The model.
  auto model = mpol::SimpleNet(mpol::SimpleNetOptions(coords).nchan(dataset->nchan()));

  // 4. Both to the device.
  mpol::DeviceTimer timer(device);
  dataset->to(device);
  model->to(device);
  fmt::print("{} cells and {} pixels moved to {} in {:.3f} s\n", dataset->ncells(), model->base().numel(), device.str(),
             timer.seconds());

  // 5. An optimiser over the model's parameters.
  auto optimizer = torch::optim::Adam(model->parameters(), 0.5);

  // 6. The loop.
  timer.start();
  for (int epoch = 0; epoch < epochs; ++epoch) {
    optimizer.zero_grad();
    const auto model_visibilities = model->forward();  // packed cube, Jy
    const auto sky = model->sky_cube();                // (nchan, npix, npix), Jy/arcsec^2
    const auto loss = mpol::losses::nll_gridded(model_visibilities, dataset) + 1e-4 * mpol::losses::sparsity(sky) +
                      1e-4 * mpol::losses::tv_image(sky);
    loss.backward();
    optimizer.step();
    if (epoch % 100 == 0) fmt::print("epoch {:4d}  loss {:.6g}\n", epoch, loss.item<double>());
  }
  const double elapsed = timer.seconds();  // waits for the device
  model->make_sky();
  const auto flux = model->flux().sum().item<double>();
  fmt::print("{} epochs in {:.2f} s, {:.2f} ms each; flux {:.4g} Jy\n", epochs, elapsed, 1e3 * elapsed / epochs, flux);

  // With both a later loop goes on from here: load_model, load_optimizer.
  mpol::save_model(output + ".model.safetensors", model);
  mpol::save_optimizer(output + ".optimizer.safetensors", optimizer, model);
  mpol::io::write_fits(output, model->sky_cube(), coords);
  fmt::print("image written to {}\n", output);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 3 ? std::stoi(argv[3]) : 600;
    if (epochs < 1) throw mpol::ValueError(fmt::format("epochs is {}; it must be at least 1", epochs));
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "simple_net.fits", epochs);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simple_net: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
