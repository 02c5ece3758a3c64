#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/trainer.h>

#include "../train/problems.h"
#include "input_file.h"
#include "readers.h"

namespace mpol::testing {
namespace {

constexpr std::int64_t epochs_done = 3;

TrainOptions options_for(OptimizerKind optimizer, StepKind step) {
  return TrainOptions().optimizer(optimizer).step(step).momentum(optimizer == OptimizerKind::sgd ? 0.5 : 0.0).epochs(epochs_done);
}

/// A fit of 4 x 4 pixels that only goes on from a checkpoint with all its epochs done.
void resume(const std::filesystem::path& path, OptimizerKind optimizer, StepKind step) {
  const SmallProblem problem{.coords = GridCoords(0.05, 4), .nchan = 1};
  auto model = problem.model();
  Trainer(model, problem.objective(), options_for(optimizer, step).checkpoint(path).resume(true)).fit();
}

std::string checkpoint_of(OptimizerKind optimizer, StepKind step) {
  const SmallProblem problem{.coords = GridCoords(0.05, 4), .nchan = 1};
  const auto path = input_folder() / "corpus.checkpoint";
  auto model = problem.model();
  Trainer(model, problem.objective(), options_for(optimizer, step).checkpoint(path)).fit();
  return without_digests(bytes_of(path));
}

}  // namespace

int fuzz_checkpoint(const std::uint8_t* bytes, std::size_t size) {
  const auto path = input_file("input.checkpoint", bytes, size);
  std::filesystem::remove(previous_checkpoint(path));
  const int read = refused([&] { read_checkpoint(path); });
  if (read != 0) return read;
  int resumed = 0;
  for (const auto optimizer : {OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lbfgs}) {
    resumed += refused([&] { resume(path, optimizer, StepKind::eager); });
  }
  resumed += refused([&] { resume(path, OptimizerKind::adam, StepKind::fused); });
  resumed += refused([&] { resume(path, OptimizerKind::lbfgs, StepKind::fused); });
  return resumed == 5 ? 1 : 0;
}

std::vector<std::string> checkpoint_corpus() {
  return {checkpoint_of(OptimizerKind::adam, StepKind::eager), checkpoint_of(OptimizerKind::sgd, StepKind::eager),
          checkpoint_of(OptimizerKind::lbfgs, StepKind::eager), checkpoint_of(OptimizerKind::adam, StepKind::fused),
          checkpoint_of(OptimizerKind::lbfgs, StepKind::fused)};
}

}  // namespace mpol::testing
