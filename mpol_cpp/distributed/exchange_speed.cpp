#include <mpol_cpp/distributed/exchange_speed.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include <ATen/ops/zeros.h>

namespace mpol {
namespace {

/// Seconds of a broadcast and a sum of so many numbers, the least of a few times.
double seconds_of_both(Communicator& ranks, torch::Device device, std::int64_t numbers) {
  constexpr int rounds = 4;  // of which the first one may open connections
  const auto place = ranks.takes(device) ? device : torch::Device(torch::kCPU);
  auto tensor = at::zeros({numbers}, at::TensorOptions(place).dtype(torch::kFloat32));
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    ranks.barrier();
    const auto begin = std::chrono::steady_clock::now();
    ranks.broadcast(tensor);
    ranks.all_reduce_sum(tensor);
    tensor.select(0, 0).item<float>();  // waits for a device
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

}  // namespace

ExchangeSpeed measure_exchange(Communicator& ranks, torch::Device device) {
  constexpr std::int64_t numbers = std::int64_t{1} << 20;
  const double small = seconds_of_both(ranks, device, 1), large = seconds_of_both(ranks, device, numbers);
  constexpr double least = 1e-9;  // what clocks tell apart
  const double bytes = static_cast<double>(numbers) * sizeof(float);
  return {small / 2, 2 * bytes / std::max(large - small, least)};
}

}  // namespace mpol
