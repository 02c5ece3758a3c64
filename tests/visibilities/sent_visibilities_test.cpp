#include "catch.h"

#include <chrono>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/distributed/store_communicator.h>
#include <mpol_cpp/visibilities/sent_visibilities.h>

#include "compare.h"
#include "random.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// What the second of two ranks receives.
Visibilities sent(const Visibilities& visibilities, const VisibilityShare& share,
                  const std::function<ArrayRoom(double)>& room = {}) {
  std::optional<Visibilities> received;
  run_as_threads(2, [&](Communicator& ranks) {
    ranks.set_timeout(std::chrono::seconds(30));
    if (ranks.is_first()) send_visibilities(visibilities, share, 1, ranks);
    else received = receive_visibilities(0, ranks, room);
  });
  return received.value();
}

void check_equal(const Visibilities& one, const Visibilities& other) {
  CHECK(same(one.data(), other.data()));
  CHECK(same(one.weights(), other.weights()));
  CHECK(same(one.baselines().u(), other.baselines().u()));
  CHECK(same(one.baselines().v(), other.baselines().v()));
  CHECK(one.baselines().digest() == other.baselines().digest());
  REQUIRE(one.frequencies().defined() == other.frequencies().defined());
  if (one.frequencies().defined()) CHECK(same(one.frequencies(), other.frequencies()));
}

}  // namespace

TEMPLATE_TEST_CASE("a rank receives what another selects, to the last bit", "[visibilities][distributed][quick]", float, double) {
  const auto dtype = c10::CppTypeToScalarType<TestType>::value;
  constexpr std::int64_t nchan = 4, nvis = 300;
  const auto frequencies = torch::linspace(2.30e11, 2.33e11, nchan, torch::kFloat64);
  const auto length = [&](at::IntArrayRef shape, std::uint64_t seed) {
    return ((uniform(shape, torch::kFloat64, seed) - 0.5) * 600).to(dtype);
  };
  const auto data = normal({nchan, nvis}, c10::toComplexType(dtype), 3), weights = uniform({nchan, nvis}, dtype, 4) + 0.5;
  const std::vector<Baselines> all_baselines = {Baselines::in_metres(length({nvis}, 1), length({nvis}, 2), frequencies),
                                                Baselines::in_lambda(length({nvis}, 1), length({nvis}, 2)),
                                                Baselines::in_lambda(length({nchan, nvis}, 1), length({nchan, nvis}, 2))};
  for (std::size_t i = 0; i < all_baselines.size(); ++i) {
    Visibilities visibilities(all_baselines[i], data, weights);
    if (i != 1) visibilities.set_frequencies(frequencies);
    check_equal(sent(visibilities, {}), visibilities);
    check_equal(sent(visibilities, {.channels = {3, 1}}), visibilities.select_channels({3, 1}));
    check_equal(sent(visibilities, {.samples = Share{70, 201}}), visibilities.select(torch::arange(70, 201)));
    check_equal(sent(visibilities, {Share{299, 300}, {2}}), visibilities.select_channels({2}).select(torch::arange(299, 300)));
  }
}

TEST_CASE("the observation goes with its visibilities", "[visibilities][distributed][quick]") {
  Visibilities visibilities(Baselines::in_lambda(torch::ones({2}), torch::ones({2})), torch::ones({2}, torch::kComplexFloat),
                            torch::ones({2}));
  const auto unknown = sent(visibilities, {}).observation();
  CHECK_FALSE(unknown.right_ascension);
  CHECK_FALSE(unknown.rest_frequency);
  CHECK(unknown.object.empty());
  Observation observation;
  observation.right_ascension = 1.25;
  observation.declination = -0.5;
  observation.object = "HD 142527, süd";
  observation.date = "2012-06-02";
  observation.rest_frequency = 3.45e11;
  observation.spectral_reference = "LSRK";
  observation.center = {0.25, -3};
  observation.stokes = Stokes::xy;
  visibilities.set_observation(observation);
  const auto known = sent(visibilities, {}).observation();
  CHECK(known.right_ascension == 1.25);
  CHECK(known.declination == -0.5);
  CHECK(known.object == observation.object);
  CHECK(known.telescope.empty());
  CHECK(known.date == observation.date);
  CHECK(known.rest_frequency == 3.45e11);
  CHECK(known.spectral_reference == "LSRK");
  CHECK(known.center == observation.center);
  CHECK(known.stokes == Stokes::xy);
}

TEST_CASE("visibilities larger than a message are received block by block, on disk where there is room",
          "[visibilities][distributed]") {
  constexpr std::int64_t nvis = (std::int64_t{1} << 22) + 5;
  const TemporaryFolder folder;
  const auto u = torch::arange(nvis, torch::kFloat32);
  const Visibilities visibilities(Baselines::in_lambda(u, -u), torch::complex(u, u + 1), u + 1);
  double bytes = 0;
  const auto received = sent(visibilities, {}, [&](double told) {
    bytes = told;
    return ArrayRoom::on_disk(folder.path());
  });
  CHECK(bytes == 20.0 * static_cast<double>(nvis));
  CHECK(is_on_disk(received.data()));
  check_equal(received, visibilities);
}
