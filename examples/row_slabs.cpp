// One image in slabs: each of the ranks that mpirun, srun or torchrun started holds rows of it, its kernel and its gradient, and
// no rank the whole. One rank by itself does the same.
//
// usage: [mpirun -n 4] row_slabs [visibilities.npz]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <torch/optim/adam.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io.h>
#include <mpol_cpp/mpol.h>

namespace {

void run(const std::string& input) {
  const auto ranks = mpol::open_communicator(mpol::find_rendezvous(mpol::process_environment()), std::chrono::minutes(10));
  const auto visibilities = mpol::io::read_npz(input);
  const auto coords = mpol::GridCoords(/*cell_size=*/0.08, /*npix=*/128);
  const auto channels = mpol::ChannelMap::continuum(visibilities.nchan());

  // Each rank transforms its share of the samples, and keeps its rows of their sums.
  const auto normal = mpol::SlabOperator(mpol::operator_of_ranks(coords, visibilities, channels, *ranks), ranks);
  const auto& slabs = normal.slabs();
  const auto objective = mpol::SlabObjective(normal, {mpol::terms::sparsity(1e-3), mpol::terms::tv_slope(1e-3)});

  auto base = torch::full({1, slabs.rows().size(), coords.npix()}, -5.0, torch::kFloat64);
  base.mutable_grad() = torch::zeros_like(base);
  torch::optim::Adam adam(std::vector<torch::Tensor>{base}, torch::optim::AdamOptions(0.2));
  std::vector<double> losses;
  for (int epoch = 0; epoch < 100; ++epoch) {
    losses = objective.value_and_gradient(base, base.mutable_grad());  // of the whole image, on every rank
    if (epoch == 0 && ranks->is_first()) fmt::print("loss {:.9g} at first\n", losses.front());
    adam.step();
  }
  const auto image = slabs.gather(objective.sky(base));  // for a look at it; the first rank alone has it
  if (!ranks->is_first()) return;
  fmt::print("{} ranks of {} to {} rows\n", ranks->size(), slabs.rows_of(ranks->size() - 1).size(), slabs.rows_of(0).size());
  fmt::print("loss {:.9g}, flux {:.9g} Jy after 100 epochs\n", losses.front(), image.sum().item<double>() * coords.cell_area());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "data/hd142527_band9.npz");
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "row_slabs: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
