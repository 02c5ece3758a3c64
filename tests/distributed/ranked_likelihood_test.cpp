#include "catch.h"

#include <memory>
#include <optional>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/distributed/store_communicator.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/likelihoods/shared/ranked_likelihood.h>

#include "demands.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Samples of which each rank has a share, and their likelihood as a whole.
struct SharedSamples {
  bool is_student;
  GridCoords coords{0.05, 12};
  Visibilities all = random_visibilities(coords, 2, 7);
  ChannelMap channels = ChannelMap::continuum(2);

  std::shared_ptr<Likelihood> make(const Visibilities& samples) const {
    if (is_student) return NoiseLikelihood(coords, samples, channels, NoiseModel::student(4)).ptr();
    return LooseLikelihood(coords, samples, channels).ptr();
  }
  /// Uneven; the second of several ranks has none.
  std::optional<Visibilities> share_of_rank(const Communicator& ranks) const {
    if (ranks.size() == 1) return all;
    if (ranks.rank() == 1) return std::nullopt;
    const auto sharing = ranks.size() - 1, rank = ranks.rank() == 0 ? 0 : ranks.rank() - 1;
    const auto share = share_of(all.nvis(), rank, sharing);
    return all.select(at::arange(share.begin, share.end, torch::kInt64));
  }
  RankedLikelihood likelihood(Communicator& ranks) const {
    return RankedLikelihood(as_shared(ranks), coords, share_of_rank(ranks), channels, torch::kCPU,
                            [this](const Visibilities& share) { return make(share); });
  }
};

}  // namespace

TEMPLATE_TEST_CASE("ranks with shares of the samples have the likelihood of all", "[distributed][quick]", float, double) {
  constexpr auto dtype = c10::CppTypeToScalarType<TestType>::value;
  const double tolerance = dtype == torch::kFloat64 ? 1e-12 : 1e-5;
  const SharedSamples samples{GENERATE(false, true)};
  const auto whole = samples.make(samples.all);
  const auto npix = samples.coords.npix();
  const auto sky = normal({3, 1, npix, npix}, torch::kFloat64, 5).abs().to(dtype);
  auto wanted = at::zeros_like(sky);
  const auto values = whole->value_and_gradient(sky, wanted, Accumulate::overwrite);
  run_as_threads(GENERATE(1, 2, 3, 5), [&](Communicator& ranks) {
    auto own = samples.likelihood(ranks);
    demand(own->normalizer() == whole->normalizer() && own->samples() == whole->samples(), "other counts");
    demand(own->name() == whole->name() && own->is_quadratic() == whole->is_quadratic(), "another kind");
    if (!ranks.is_first()) return own->serve();
    auto gradient = at::zeros_like(sky);
    const auto found = own->value_and_gradient(sky, gradient, Accumulate::overwrite);
    demand(found.scalar_type() == torch::kFloat64 && gap_between(found, values) < tolerance, "other values");
    demand(gap_between(gradient, wanted) < tolerance, "another gradient");
    own->value_and_gradient(sky, gradient, Accumulate::add);
    demand(gap_between(gradient, 2 * wanted) < tolerance, "another sum of gradients");
    demand(own->tells_channels() == whole->tells_channels(), "tells other things");
    if (own->tells_channels()) {
      const auto of_channels = own->channel_values_and_gradient(sky, gradient, Accumulate::overwrite);
      demand(of_channels.sizes() == at::IntArrayRef{3, 1} && gap_between(of_channels.squeeze(1), values) < tolerance,
             "other values of channels");
    }
    auto leaf = sky[1].clone().requires_grad_();  // one problem, and the other dtype
    own->chi_squared(leaf).backward();
    demand(gap_between(leaf.grad(), wanted[1]) < tolerance, "another gradient by autograd");
    own->release();
    own->release();
    try {
      own->value_and_gradient(sky, gradient, Accumulate::add);
    } catch (const ValueError&) {
      return;
    }
    throw DataError("an evaluation after the release is not refused");
  });
}

TEST_CASE("the error of a rank that evaluates ends all", "[distributed][quick]") {
  const SharedSamples samples{false};
  const auto sky = normal({1, 12, 12}, torch::kFloat64, 5);
  CHECK_THROWS_AS(run_as_threads(3,
                                 [&](Communicator& ranks) {
                                   auto own = samples.likelihood(ranks);
                                   if (ranks.rank() == 2) throw DataError("this rank cannot");
                                   if (ranks.rank() == 1) return own->serve();
                                   auto gradient = at::zeros_like(sky);
                                   own->value_and_gradient(sky, gradient, Accumulate::overwrite);
                                 }),
                  DataError);
}

TEST_CASE("ranks without any samples, and images of another shape, are refused", "[distributed][quick]") {
  const SharedSamples samples{false};
  const auto alone = single_rank();
  const auto make = [&](const Visibilities& share) { return samples.make(share); };
  CHECK_THROWS_WITH(RankedLikelihood(alone, samples.coords, std::nullopt, samples.channels, torch::kCPU, make),
                    ContainsSubstring("no rank has visibilities"));
  RankedLikelihood own(alone, samples.coords, samples.all, samples.channels, torch::kCPU, make);
  const auto sky = normal({2, 12, 12}, torch::kFloat64, 5);
  auto gradient = at::zeros_like(sky);
  CHECK_THROWS_AS(own->value_and_gradient(sky, gradient, Accumulate::overwrite), ShapeError);
}
