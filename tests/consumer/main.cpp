// Trains ten steps with an installed mpol_cpp on visibilities of a Gaussian source, and fails unless the loss falls.
#include <cmath>
#include <cstdlib>
#include <numbers>

#include <ATen/ops/complex.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/adam.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/mpol.h>

namespace {

mpol::Visibilities observe_gaussian(double longest_baseline, double width_radian) {
  const auto u = longest_baseline * (2 * at::rand({2000}, torch::kDouble) - 1);
  const auto v = longest_baseline * (2 * at::rand({2000}, torch::kDouble) - 1);
  const auto flux = at::exp(-2 * std::pow(std::numbers::pi * width_radian, 2) * (u.square() + v.square()));  // Jy
  return {mpol::Baselines::in_lambda(u, v), at::complex(flux, at::zeros_like(flux)), 1e4 * at::ones_like(flux)};
}

double train(int epochs) {
  const auto visibilities = observe_gaussian(/*longest_baseline=*/3e5, /*width_radian=*/1e-6);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.05, /*npix=*/64);
  const auto averager =
      mpol::DataAverager(coords, visibilities, mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off));
  const auto dataset = averager.to_dataset();
  auto model = mpol::SimpleNet(mpol::SimpleNetOptions(coords));
  model->to(torch::kDouble);
  auto optimizer = torch::optim::Adam(model->parameters(), 0.3);

  double first = 0, last = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    optimizer.zero_grad();
    const auto model_visibilities = model->forward();
    const auto loss = mpol::losses::nll_gridded(model_visibilities, dataset) + 1e-4 * mpol::losses::sparsity(model->sky_cube());
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (epoch == 0) first = last;
  }
  fmt::print("mpol_cpp {}: the loss went from {:.6g} to {:.6g} in {} steps\n", mpol::version(), first, last, epochs);
  return last / first;
}

}  // namespace

int main() { return train(/*epochs=*/10) < 1.0 ? EXIT_SUCCESS : EXIT_FAILURE; }
