#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/train/memory_estimate.h>

using namespace mpol;

TEST_CASE("the estimate grows with everything that takes memory", "[train][quick]") {
  const auto bytes = [](const MemorySettings& settings) { return estimate_memory(settings).total(); };
  const auto base = MemorySettings(512, 2);
  const double pixels = 512.0 * 512 * 2;
  CHECK(bytes(base) >= 24 * 4 * pixels);
  CHECK(bytes(MemorySettings(1024, 2)) > 3 * bytes(base) - 0x1p30);
  CHECK(bytes(MemorySettings(base).dtype(torch::kFloat64)) - bytes(base) == 26 * 4 * pixels);
  // Pairs of L-BFGS: its own hundred and one, those of the two epochs before, and on a GPU the copies of all.
  const auto lbfgs = MemorySettings(base).optimizer(OptimizerKind::lbfgs);
  CHECK(bytes(lbfgs) - bytes(base) == (2 * 141 + 7) * 4 * pixels);
  CHECK(bytes(MemorySettings(lbfgs).epochs(2)) - bytes(MemorySettings(base).epochs(2)) == (2 * 40 + 7) * 4 * pixels);
  const auto on_gpu = MemorySettings(base).on_gpu(true);
  CHECK(bytes(MemorySettings(on_gpu).optimizer(OptimizerKind::lbfgs)) - bytes(on_gpu) == (2 * 241 + 7) * 4 * pixels);
  // Lengths that join channels have duals, which Adam has not.
  const auto pogm = MemorySettings(base).optimizer(OptimizerKind::pogm);
  CHECK(bytes(MemorySettings(pogm).more_duals(2)) - bytes(pogm) == 2 * 14 * 4 * pixels);
  CHECK(bytes(MemorySettings(base).more_duals(2)) == bytes(base));
  CHECK(bytes(MemorySettings(base).problems(3)) - bytes(base) == 2 * 26 * 4 * pixels);
  CHECK(bytes(MemorySettings(base).data_bytes(1e9)) - bytes(base) == 1e9);
  for (const auto& kind : {ExactLikelihoodImpl::kind(), LooseLikelihoodImpl::kind()}) {
    const auto with = MemorySettings(base).likelihood(kind);
    CHECK(bytes(with) >= bytes(base) + 48 * pixels);
    CHECK(bytes(MemorySettings(with).dtype(torch::kFloat64)) > bytes(MemorySettings(base).dtype(torch::kFloat64)));
  }
  // Samples are held by the loose likelihoods; the others take them in blocks.
  const auto of_samples = [&](const LikelihoodKind& kind, bool gaussian = true) {
    const auto with = MemorySettings(base).likelihood(kind).gaussian(gaussian);
    return bytes(MemorySettings(with).visibilities(100'000'000)) - bytes(with);
  };
  CHECK(of_samples(LooseLikelihoodImpl::kind()) > 1e9);
  CHECK(of_samples(LooseLikelihoodImpl::kind(), /*gaussian=*/false) > 1e9);
  CHECK(of_samples(GriddedLikelihoodImpl::kind()) < 150e6);
  CHECK(of_samples(ExactLikelihoodImpl::kind()) < 150e6);
  // Losses of the epochs: the learning rate and the columns.
  CHECK(bytes(MemorySettings(base).epochs(1'000'500).columns(4)) - bytes(MemorySettings(base).columns(4)) == 40e6);
  const auto exact = MemorySettings(512, 64).likelihood(ExactLikelihoodImpl::kind());
  CHECK(bytes(exact) - bytes(MemorySettings(exact).kernels_in_memory(false)) == 24 * 32 * pixels);
  // On a GPU an evaluation, again in the recording that keeps its own, and copies of what recording changes.
  CHECK(bytes(MemorySettings(exact).on_gpu(true)) - bytes(exact) == 2 * 16 * 32 * pixels + 4 * 4 * 32 * pixels);
  // Where npix has other prime factors than 2, 3 and 5, LibTorch evaluates.
  const auto odd = MemorySettings(518, 64).likelihood(ExactLikelihoodImpl::kind());
  constexpr double odd_pixels = 64 * 518 * 518;
  CHECK(bytes(MemorySettings(odd).on_gpu(true)) - bytes(odd) == 2 * (40 * odd_pixels + 0x1p29) + 4 * 4 * odd_pixels);
  const auto admm = MemorySettings(base).optimizer(OptimizerKind::admm);  // whose steps are not recorded
  CHECK(bytes(MemorySettings(admm).on_gpu(true)) == bytes(admm));
  CHECK(bytes(MemorySettings(1'000'000'000, 1)) > 1e18);  // no overflow, nothing allocated
}

TEST_CASE("an estimate says what it is made of, the largest part first", "[train][quick]") {
  const auto estimate = estimate_memory(MemorySettings(2048, 4).optimizer(OptimizerKind::lbfgs));
  CHECK_THAT(estimate.words(), StartsWith("19.") && ContainsSubstring("GiB (history of L-BFGS 18.1 GiB, fit 1.6 GiB"));
  double sum = 0;
  for (const auto& part : estimate.parts) sum += part.bytes;
  CHECK(sum == estimate.total());
  CHECK(estimate_dirty_memory(1000, 2).total() == 8e6 * 12);
}

TEST_CASE("an estimate refuses what is no size", "[train][quick]") {
  CHECK_THROWS_AS(estimate_memory(MemorySettings(0, 1)), ValueError);
  CHECK_THROWS_AS(estimate_memory(MemorySettings(8, -1)), ValueError);
  CHECK_THROWS_AS(estimate_memory(MemorySettings(8, 1).problems(0)), ValueError);
  CHECK_THROWS_AS(estimate_memory(MemorySettings(8, 1).more_duals(-1)), ValueError);
  CHECK_THROWS_AS(estimate_memory(MemorySettings(8, 1).visibilities(-1)), ValueError);
  CHECK_THROWS_AS(estimate_memory(MemorySettings(8, 1).dtype(torch::kInt64)), ValueError);
}
