// Optimizers of LibTorch: in a loop by hand at the speed of the fused step, and in the trainer.
//
// usage: own_optimizer [visibilities.npz] [image.fits] [epochs]
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

void run(const std::string& input, const std::string& output, int epochs) {
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto likelihood = mpol::GriddedLikelihood(mpol::DataAverager(coords, visibilities).to_dataset());
  const auto objective = mpol::Objective(likelihood, {mpol::terms::sparsity(1e-4), mpol::terms::tv_image(2e-4)});

  // By hand: the loss and its gradient in the passes of the fused step, any optimizer on them.
  auto model = mpol::GriddedNet(mpol::GriddedNetOptions(coords));
  mpol::FusedLoss loss(model, objective);
  auto optimizer = torch::optim::RMSprop(model->parameters(), torch::optim::RMSpropOptions(0.05));
  mpol::DeviceTimer timer(torch::kCPU);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    optimizer.zero_grad();
    loss(model->base()).backward();
    optimizer.step();
  }
  fmt::print("RMSprop by hand: loss {:.6g}; {:.2f} ms an epoch\n", objective.evaluate(model).total.item<double>(),
             1e3 * timer.seconds() / epochs);

  // Left to the trainer, which adds checkpoints, schedules, stop criteria and verdicts.
  auto trained = mpol::GriddedNet(mpol::GriddedNetOptions(coords));
  const auto adamw = mpol::OwnOptimizer{"AdamW, weight decay 0.01", [](std::vector<torch::Tensor> parameters) {
                                          return std::make_unique<torch::optim::AdamW>(
                                              std::move(parameters), torch::optim::AdamWOptions().weight_decay(0.01));
                                        }};
  const auto options = mpol::TrainOptions()
                           .optimizer(adamw)
                           .learning_rate(0.3)
                           .schedule(mpol::LearningRateSchedule::cosine(epochs, 0.1))
                           .epochs(epochs);
  const auto result = mpol::Trainer(trained, objective, options).fit();
  fmt::print("AdamW by the trainer: loss {:.6g}; {} step ({})\n", result.loss.total(), mpol::to_string(result.step),
             result.step_reason);
  mpol::io::write_fits(output, trained->make_sky(), coords);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 3 ? std::stoi(argv[3]) : 300;
    if (epochs < 1) throw mpol::ValueError(fmt::format("epochs is {}; it must be at least 1", epochs));
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "own_optimizer.fits", epochs);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "own_optimizer: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
