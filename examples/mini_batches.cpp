// Mini-batches: a step looks at some of the visibilities only. Left to the trainer, and by hand with batches that are chosen and
// come to the device while the one before is worked on.
//
// usage: mini_batches [visibilities.npz] [image.fits] [passes]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <torch/optim/adam.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

void run(const std::string& input, const std::string& output, int passes) {
  const auto device = mpol::select_device();
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto channels = mpol::ChannelMap::cube(visibilities.nchan());
  const auto image = mpol::auto_start(coords, visibilities, channels);
  const auto start = mpol::softplus_mapping().inverse(image);
  const auto begin = [&] { return mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(start).dtype(torch::kFloat32)); };
  const std::vector<mpol::Term> priors = {mpol::terms::sparsity(1e-3), mpol::terms::tv_image(2e-3)};

  // Batches of all baseline lengths alike, so that each resembles the whole. A pass takes every visibility once.
  const auto batches = mpol::VisibilitySamplerOptions().sampling(mpol::Sampling::uniform).batch_size(4096);

  // 1. The trainer: a likelihood that takes the next batch at each step. The steps become shorter, or noise would remain.
  auto likelihood = mpol::MiniBatchLikelihood(coords, visibilities, channels, batches);
  auto model = begin();
  const auto steps = passes * likelihood->batches();
  const auto options = mpol::TrainOptions()
                           .epochs(steps)
                           .learning_rate(0.1)
                           .schedule(mpol::LearningRateSchedule::cosine(steps, 0.01))
                           .device(device);
  const auto fit = mpol::Trainer(model, mpol::Objective(likelihood, priors), options).fit();
  fmt::print("trainer: {} passes of {} batches; loss of all visibilities {:.6g}\n", passes, likelihood->batches(),
             fit.loss.total());

  // 2. By hand. chi^2 of the batches of a pass adds up to that of all visibilities.
  const auto sampler = mpol::VisibilitySampler(coords, visibilities.baselines(), batches);
  const auto everything = static_cast<double>(visibilities.nvis());
  auto own = begin();
  own->to(device);
  double sum = 0;
  for (const auto& samples : sampler.epoch(0)) {
    auto part = mpol::LooseLikelihood(coords, visibilities.select(samples), channels);
    part->to(device);
    sum += part->chi_squared(own->make_sky()).item<double>();
  }
  fmt::print("chi^2 at first: {:.5g}; of all batches of a pass: {:.5g}\n",
             likelihood->chi_squared(own->make_sky().detach()).item<double>(), sum);
  auto optimizer = torch::optim::Adam(own->parameters(), 0.1);
  for (int pass = 0; pass < passes; ++pass) {
    const auto loader = mpol::VisibilityBatches(visibilities, sampler, pass);
    for (auto& group : optimizer.param_groups()) group.options().set_lr(0.1 * (1 - static_cast<double>(pass) / passes));
    for (const auto& batch : mpol::DeviceIterator(loader, device)) {
      auto part = mpol::LooseLikelihood(coords, batch, channels, mpol::NufftOptions{1e-6});
      part->to(device);
      optimizer.zero_grad();
      const auto sky = own->make_sky();
      const auto chi_squared = part->chi_squared(sky) * (everything / static_cast<double>(batch.nvis()));
      const auto loss =
          chi_squared / (2 * likelihood->normalizer()) + 1e-3 * mpol::losses::sparsity(sky) + 2e-3 * mpol::losses::tv_image(sky);
      loss.backward();
      optimizer.step();
    }
  }
  own->to(torch::kCPU);

  // 3. What both miss of the optimum, which the exact likelihood finds.
  const auto exact = mpol::Objective(mpol::ExactLikelihood(coords, visibilities, channels), priors);
  auto best = mpol::GriddedNet(mpol::GriddedNetOptions(coords).base_cube(image).pixel_mapping(mpol::nonnegative_mapping()));
  const auto optimum =
      mpol::Trainer(best, exact, mpol::TrainOptions().optimizer(mpol::OptimizerKind::pogm).epochs(20000)).fit().loss.total();
  const auto loss_by_hand = exact.evaluate(own).total.item<double>();
  fmt::print("by hand: loss of all visibilities {:.6g}\n", loss_by_hand);
  fmt::print("optimum: {:.6g}; above it {:.3f} % and {:.3f} %\n", optimum, 100 * (fit.loss.total() / optimum - 1),
             100 * (loss_by_hand / optimum - 1));
  mpol::io::write_fits(output, own->make_sky().detach(), coords);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int passes = argc > 3 ? std::stoi(argv[3]) : 30;
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz", argc > 2 ? argv[2] : "mini_batches.fits", passes);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mini_batches: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
