// Times azimuthal integration; one JSON row: seconds to make the operator, and of each sum over a stack of frames in float32.
//
// usage: polar_benchmark NPIX FRAMES NR NPHI THREADS ROUNDS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>

#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

int main(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(stderr, "usage: polar_benchmark NPIX FRAMES NR NPHI THREADS ROUNDS\n");
    return 2;
  }
  std::vector<std::int64_t> numbers;
  for (int i = 1; i < argc; ++i) numbers.push_back(std::atoll(argv[i]));
  const auto npix = numbers[0], frames = numbers[1], nr = numbers[2], nphi = numbers[3];
  at::set_num_threads(static_cast<int>(numbers[4]));
  const auto seconds_of = [](const auto& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const mpol::GridCoords coords(1.0, npix);
  const auto stack = at::rand({frames, npix, npix}, torch::kFloat32);
  std::vector<double> setup, sums;
  for (std::int64_t round = 0; round < numbers[5]; ++round) {
    const auto options = mpol::PolarIntegratorOptions()
                             .radii(mpol::even_edges(0, static_cast<double>(npix) / 2, nr))
                             .azimuths(mpol::even_edges(0, 2 * mpol::units::pi, nphi));
    setup.push_back(seconds_of([&] { mpol::PolarIntegrator(coords, options); }));
    const mpol::PolarIntegrator integrator(coords, options);
    sums.push_back(seconds_of([&] { integrator.forward(stack); }));
  }
  fmt::print("{{\"npix\": {}, \"frames\": {}, \"nr\": {}, \"nphi\": {}, \"setup\": [{:.4g}], \"sums\": [{:.4g}]}}\n", npix,
             frames, nr, nphi, fmt::join(setup, ", "), fmt::join(sums, ", "));
  return 0;
}
