#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/visibilities/join_samples.h>

#include "compare.h"
#include "random.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

Tensor baseline_lengths(std::int64_t nvis, double longest, std::uint64_t seed) {
  return (uniform({nvis}, torch::kFloat64, seed) * 2 - 1) * longest;
}

Visibilities window_in_metres(std::int64_t nvis, const Tensor& frequencies, torch::Dtype dtype, std::uint64_t seed) {
  const auto nchan = frequencies.size(0);
  Visibilities window(Baselines::in_metres(baseline_lengths(nvis, 300, seed).to(dtype),
                                           baseline_lengths(nvis, 300, seed + 1).to(dtype), frequencies),
                      normal({nchan, nvis}, c10::toComplexType(dtype), seed + 2),
                      (uniform({nchan, nvis}, dtype, seed + 3) + 0.5));
  window.set_frequencies(frequencies);
  return window;
}

DataAverager averaged(const Visibilities& visibilities, const ChannelMap& channels) {
  return DataAverager(GridCoords(0.1, 64), visibilities,
                      DataAveragerOptions().channel_map(channels).scatter_check(ScatterCheck::off));
}

}  // namespace

TEST_CASE("the channels of one block joined are its continuum, bit for bit", "[visibilities][quick]") {
  const auto frequencies = torch::tensor({2.30e11, 2.31e11, 2.33e11}, torch::kFloat64);
  const auto window = window_in_metres(700, frequencies, torch::kFloat32, 1);
  const auto joined = join_samples({window});
  CHECK(joined.nchan() == 1);
  CHECK(joined.nvis() == 2100);
  CHECK(joined.data().scalar_type() == torch::kComplexFloat);
  CHECK(joined.baselines().u().scalar_type() == torch::kDouble);
  CHECK(joined.frequencies().item<double>() == Approx(frequencies.mean().item<double>()).epsilon(1e-14));
  const auto one = averaged(window, ChannelMap::continuum(3)).to_dataset();
  const auto other = averaged(joined, ChannelMap::cube(1)).to_dataset();
  CHECK(torch::equal(one->cells(), other->cells()));
  CHECK(same(one->visibilities(), other->visibilities()));
  CHECK(same(one->weights(), other->weights()));
}

TEST_CASE("samples are joined on disk as in memory", "[visibilities][quick]") {
  const TemporaryFolder folder;
  const auto first = window_in_metres(500, torch::tensor({2.30e11, 2.34e11}, torch::kFloat64), torch::kFloat32, 11);
  const auto second = window_in_metres(300, torch::tensor({3.45e11}, torch::kFloat64), torch::kFloat64, 12);
  const auto in_memory = join_samples({first, second}),
             on_disk = join_samples({first, second}, ArrayRoom::on_disk(folder.path()));
  for (const auto* array : {&on_disk.data(), &on_disk.weights(), &on_disk.baselines().u(), &on_disk.baselines().v()})
    CHECK(is_on_disk(*array));
  CHECK(same(on_disk.data(), in_memory.data()));
  CHECK(same(on_disk.weights(), in_memory.weights()));
  CHECK(same(on_disk.baselines().u(), in_memory.baselines().u()));
  CHECK(same(on_disk.baselines().v(), in_memory.baselines().v()));
  CHECK(on_disk.frequencies().item<double>() == in_memory.frequencies().item<double>());
}

TEST_CASE("blocks of different channels and samples are summed, each at its own baselines", "[visibilities][quick]") {
  const auto first = window_in_metres(500, torch::tensor({2.30e11, 2.34e11}, torch::kFloat64), torch::kFloat32, 11);
  const auto second = window_in_metres(300, torch::tensor({3.45e11}, torch::kFloat64), torch::kFloat64, 12);
  const Visibilities third(Baselines::in_lambda(baseline_lengths(200, 2e5, 13), baseline_lengths(200, 2e5, 14)),
                           normal({200}, torch::kComplexDouble, 15), uniform({200}, torch::kFloat64, 16) + 0.5);
  const auto joined = join_samples({first, second, third});
  CHECK(joined.nvis() == 2 * 500 + 300 + 200);
  CHECK(joined.data().scalar_type() == torch::kComplexDouble);
  CHECK_FALSE(joined.frequencies().defined());  // those of the third are not known
  // Sums over cells add up.
  const auto total = [](const Visibilities& data) {
    const auto dataset = averaged(data, ChannelMap::continuum(data.nchan())).to_dataset();
    return std::pair(dataset->packed_weights(), dataset->packed_visibilities() * dataset->packed_weights());
  };
  const auto [weights, sums] = total(joined);
  auto expected_weights = torch::zeros_like(weights), expected_sums = torch::zeros_like(sums);
  for (const auto& block : {first, second, third}) {
    const auto [own_weights, own_sums] = total(block);
    expected_weights += own_weights;
    expected_sums += own_sums;
  }
  CHECK(relative_error(weights, expected_weights) < 1e-13);
  CHECK(relative_error(sums, expected_sums) < 1e-13);
  CHECK_THROWS_AS(join_samples({}), ValueError);
}

TEST_CASE("blocks with different phase centres are not one image", "[visibilities][quick]") {
  const auto frequencies = torch::tensor({2.30e11}, torch::kFloat64);
  const auto pointing = [&](double right_ascension, double declination) {
    auto window = window_in_metres(20, frequencies, torch::kFloat64, 21);
    Observation observation;
    observation.right_ascension = right_ascension * units::degree;
    observation.declination = declination * units::degree;
    window.set_observation(observation);
    return window;
  };
  const auto unknown = window_in_metres(20, frequencies, torch::kFloat64, 22);
  const auto first = pointing(359.9999, -42);
  CHECK(join_samples({unknown, first, pointing(-0.0001, -42 + 1e-9)}).nvis() == 60);  // the same but for rounding
  CHECK_THROWS_WITH(join_samples({unknown, first, pointing(359.9999, -42.001)}),
                    ContainsSubstring("359.9999") && ContainsSubstring("-42.001") && ContainsSubstring("3.6 arcsec apart"));
  CHECK_THROWS_AS(join_samples({first, pointing(0.0001, -42)}), DataError);
  // A declination alone tells two fields apart, too.
  auto without_ascension = pointing(0, 40);
  auto observation = without_ascension.observation();
  observation.right_ascension.reset();
  without_ascension.set_observation(observation);
  CHECK_THROWS_WITH(join_samples({first, without_ascension}), ContainsSubstring("RA unknown, Dec 40"));
  CHECK(join_samples({unknown, first}).observation().declination == first.observation().declination);
}

TEST_CASE("blocks of different polarisations are not one image", "[visibilities][quick]") {
  const auto of = [](Stokes stokes) {
    auto window = window_in_metres(20, torch::tensor({2.30e11}, torch::kFloat64), torch::kFloat64, 23);
    Observation observation;
    observation.stokes = stokes;
    window.set_observation(observation);
    return window;
  };
  CHECK(join_samples({of(Stokes::q), of(Stokes::q)}).observation().stokes == Stokes::q);
  CHECK_THROWS_WITH(join_samples({of(Stokes::q), of(Stokes::q), of(Stokes::xx)}),
                    ContainsSubstring("Stokes Q") && ContainsSubstring("correlation XX"));
  CHECK_THROWS_AS(join_samples({of(Stokes::i), of(Stokes::v)}), DataError);
}
