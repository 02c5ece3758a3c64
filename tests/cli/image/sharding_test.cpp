#include "catch.h"

#include <mpol_cpp/cli/sharing/sharding.h>

using namespace mpol;
using namespace mpol::cli;

namespace {

constexpr std::int64_t npix = 512, samples = 1'000'000;

ImageOptions loose() {
  ImageOptions options;
  options.likelihood = "loose";
  options.data.device = "cpu";
  return options;
}

SharedStep step_with(double seconds, double bytes_per_second) {
  return {.exchange = {seconds, bytes_per_second},
          .samples = samples,
          .seconds_of_sample = seconds_of_sample(torch::kCPU, torch::kFloat32, 1)};
}

Sharding chosen(const ImageOptions& options, std::int64_t ranks, const std::optional<SharedStep>& step) {
  return choose_sharding(options, {.npix = npix, .nchan = 1, .samples = samples}, ranks, step);
}

}  // namespace

TEST_CASE("samples are shared where a step takes less time so, by what exchanges take", "[cli][quick]") {
  // To go through 10^6 samples takes 8 ms, of which two ranks save 4, and sixteen 7.5; a broadcast and a sum are of 1 MiB each.
  const auto options = loose();
  REQUIRE(weighs_exchange(options));
  CHECK(chosen(options, 2, step_with(1e-5, 1e9)).shard == Shard::visibilities);
  const auto slow = chosen(options, 2, step_with(1e-5, 4e8));  // 5.3 ms
  CHECK(slow.shard == Shard::none);
  CHECK_THAT(slow.reason,
             ContainsSubstring("to exchange 262144 pixels in each step takes 5.3 ms, at 381 MiB a second, longer than "
                               "the 4 ms that it saves to share 1000000 samples"));
  CHECK(chosen(options, 16, step_with(1e-5, 4e8)).shard == Shard::visibilities);
  CHECK(chosen(options, 2, step_with(3e-3, 1e12)).shard == Shard::none);  // who is far away
  CHECK(chosen(options, 2, std::nullopt).shard == Shard::visibilities);   // more samples than pixels
  auto asked = options;
  asked.shard = Shard::visibilities;
  CHECK_FALSE(weighs_exchange(asked));
  CHECK(chosen(asked, 2, step_with(1, 1)).shard == Shard::visibilities);
  auto exact = options;
  exact.likelihood = "exact";  // exchanges once
  CHECK_FALSE(weighs_exchange(exact));
  CHECK(chosen(exact, 2, step_with(1, 1)).shard == Shard::visibilities);
  auto batches = options;
  batches.batch_size = 100;
  CHECK_FALSE(weighs_exchange(batches));
}

TEST_CASE("a step of more threads, and of a GPU, is quicker", "[cli][quick]") {
  const auto on_cpu = [](torch::Dtype dtype, std::int64_t threads) { return seconds_of_sample(torch::kCPU, dtype, threads); };
  CHECK(on_cpu(torch::kFloat32, 4) == on_cpu(torch::kFloat32, 1) / 4);
  CHECK(on_cpu(torch::kFloat64, 1) > on_cpu(torch::kFloat32, 1));
  const torch::Device gpu(torch::kCUDA, 0);
  CHECK(seconds_of_sample(gpu, torch::kFloat32, 1) == seconds_of_sample(gpu, torch::kFloat32, 8));
  CHECK(seconds_of_sample(gpu, torch::kFloat64, 8) < on_cpu(torch::kFloat32, 4));
}
