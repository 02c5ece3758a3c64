#include "catch.h"

#include <set>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/likelihood_kind.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("each likelihood of the list is made and measured by its line there", "[likelihoods][quick]") {
  const GridCoords coords(0.03, 32);
  constexpr std::int64_t nchan = 2, nvis = 300;
  const auto spread = [&](std::uint64_t seed) {
    return normal({nvis}, torch::kFloat64, seed).clamp(-3, 3) * (0.3 * coords.max_uv());
  };
  const Visibilities visibilities(Baselines::in_lambda(spread(1), spread(2)), normal({nchan, nvis}, torch::kComplexDouble, 3),
                                  uniform({nchan, nvis}, torch::kFloat64, 4) + 0.5);
  const auto channels = ChannelMap::cube(nchan);
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  const LikelihoodSource source{visibilities, channels, dataset, dtype, torch::kCPU};
  const auto sky = uniform({nchan, 32, 32}, dtype, 5);
  std::set<std::string> names;
  for (const auto& kind : all_likelihoods()) {
    INFO(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK(&likelihood_kind(kind.name) == &kind);
    const auto likelihood = kind.make(source);
    CHECK(likelihood->name() == kind.name);
    CHECK(likelihood->coords() == coords);
    CHECK(likelihood->samples() == (kind.of_cells ? dataset->ncells() : nchan * nvis));
    CHECK(likelihood->visibilities_count() == nchan * nvis);
    CHECK(likelihood->normalizer() == static_cast<double>(dataset->ncells()));
    CHECK(likelihood->chi_squared(sky).item<double>() > 0);
    // Memory grows with the images, and with the samples where each evaluation goes through them.
    LikelihoodSizes sizes{.npix = 512, .nchan = 2, .channels_of_results = 2, .dtype = dtype, .visibilities = 1000};
    const auto small = kind.memory(sizes);
    sizes.visibilities = 100'000'000;
    CHECK((kind.memory(sizes).held > small.held) == kind.goes_through_samples);
    sizes.channels_of_results = 20;
    CHECK(kind.memory(sizes).ending >= small.ending);
  }
  CHECK_THROWS_WITH(likelihood_kind("gridded exactly"),
                    ContainsSubstring("is not a likelihood; there are exact, gridded, loose"));
}

TEST_CASE("the likelihood of samples takes other noise, batches and chunks from its source", "[likelihoods][quick]") {
  const GridCoords coords(0.03, 32);
  const auto spread = [&](std::uint64_t seed) {
    return normal({200}, torch::kFloat64, seed).clamp(-3, 3) * (0.3 * coords.max_uv());
  };
  const Visibilities visibilities(Baselines::in_lambda(spread(1), spread(2)), normal({1, 200}, torch::kComplexDouble, 3),
                                  uniform({1, 200}, torch::kFloat64, 4) + 0.5);
  const auto channels = ChannelMap::cube(1);
  const auto dataset = DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
  const auto& loose = likelihood_kind("loose");
  const LikelihoodSource source{visibilities, channels, dataset, torch::kFloat64, torch::kCPU};
  const auto value = [&](const LikelihoodSource& from) {
    const auto sky = uniform({1, 32, 32}, torch::kFloat64, 5).requires_grad_();  // batches are drawn where gradients are wanted
    return loose.make(from)->chi_squared(sky).item<double>();
  };
  const double whole = value(source);
  auto in_chunks = source, student = source, batches = source;
  in_chunks.chunks = ChunkedLikelihoodOptions().chunk(64);
  CHECK(value(in_chunks) == Approx(whole).epsilon(1e-12));
  student.noise = NoiseModel::student(4);
  CHECK(loose.make(student)->name() == "loose with student noise");
  CHECK(value(student) != Approx(whole).epsilon(1e-3));
  batches.batches = VisibilitySamplerOptions().batch_size(50);
  CHECK(loose.make(batches)->samples() == 200);
  CHECK(value(batches) != Approx(whole).epsilon(1e-6));
}
