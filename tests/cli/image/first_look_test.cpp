#include "catch.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <ATen/ops/linspace.h>

#include <mpol_cpp/cli/image/first_look.h>
#include <mpol_cpp/distributed/shares.h>
#include <mpol_cpp/distributed/store_communicator.h>
#include <mpol_cpp/gridding/data_averager.h>

#include "cli/observation.h"

using namespace mpol;
using namespace mpol::cli;
using namespace mpol::testing;

namespace {

const GridCoords coords(0.1, 32);

/// A cube whose channels have baselines and weights of their own, with many samples in a cell.
Visibilities cube_of(std::int64_t nchan) {
  auto arrays = small_observation(nchan, 4000);
  const auto scale = at::linspace(0.8, 1.0, nchan, torch::kFloat64).unsqueeze(1);
  Visibilities data(Baselines::in_lambda(arrays.at("uu") * scale, arrays.at("vv") * scale), arrays.at("data"),
                    arrays.at("weight") * scale);
  data.set_frequencies(at::linspace(2.3e11, 2.31e11, nchan, torch::kFloat64));
  return data;
}

/// A part of the channels as a rank has it.
struct Part {
  Visibilities visibilities;
  ChannelMap map;
  DataAverager averager;
  GriddedDataset cells;

  explicit Part(Visibilities own)
      : visibilities(std::move(own)),
        map(ChannelMap::cube(visibilities.nchan())),
        averager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off).keep_statistics(true)),
        cells(averager.to_dataset()) {}
  FitData data() const { return {visibilities, map, cells, Imaging::exact}; }
};

std::optional<Part> part_of(const Visibilities& all, const Share& share) {
  if (share.is_empty()) return std::nullopt;
  std::vector<std::int64_t> channels(static_cast<std::size_t>(share.size()));
  std::iota(channels.begin(), channels.end(), share.begin);
  return Part(all.select_channels(channels));
}

void check_same(const DirtyPeaks& own, const DirtyPeaks& wanted) {
  CHECK(own.brightest == wanted.brightest);
  CHECK(own.darkest == wanted.darkest);
  CHECK(own.on_any_scale == wanted.on_any_scale);
  CHECK(own.share_on_scale == wanted.share_on_scale);
}

}  // namespace

TEST_CASE("ranks that have channels of their own know together what one knows of all", "[cli][quick]") {
  const auto ranks = GENERATE(1, 2, 3, 7);
  const bool either_sign = GENERATE(false, true);
  INFO(ranks << " ranks, of either sign: " << either_sign);
  const Part all(cube_of(5));
  const Looking how{either_sign, true, 1e4};
  const auto wanted = look_at(all.data(), how);
  CHECK(wanted.weights.sum == Approx(all.visibilities.weights().sum().item<double>()));
  CHECK(wanted.weights.least == all.visibilities.weights().min().item<double>());
  CHECK(wanted.weights.largest == all.visibilities.weights().max().item<double>());
  const auto uv = summarize_uv(all.visibilities.baselines());
  run_as_threads(ranks, [&](Communicator& communicator) {
    const auto part = part_of(all.visibilities, share_of(5, communicator.rank(), communicator.size()));
    const auto data = part ? std::optional(part->data()) : std::nullopt;
    const auto look = look_at(data ? &*data : nullptr, how, communicator);
    const auto scatter = scatter_of_ranks(part ? part->averager.cell_statistics() : CellStatistics(), communicator);
    const auto known = outline_of_ranks(part ? &part->visibilities : nullptr, communicator);
    CHECK(scatter.real == all.averager.scatter().real);
    CHECK(scatter.imag == all.averager.scatter().imag);
    CHECK(scatter.cells == all.averager.scatter().cells);
    CHECK(known.has_value() == communicator.is_first());
    if (!communicator.is_first()) return;
    check_same(look.peaks, wanted.peaks);
    CHECK(look.weights.sum == Approx(wanted.weights.sum).epsilon(1e-14));
    CHECK(look.weights.least == wanted.weights.least);
    CHECK(look.weights.largest == wanted.weights.largest);
    REQUIRE(look.signals.size() == 5);
    for (std::size_t c = 0; c < 5; ++c) {
      check_same(look.signals[c].peaks, wanted.signals[c].peaks);
      CHECK(look.signals[c].unit == wanted.signals[c].unit);
    }
    const auto& [outline, own_uv] = *known;
    CHECK(outline.nchan == 5);
    CHECK(outline.nvis == 4000);
    CHECK(torch::equal(outline.frequencies, all.visibilities.frequencies()));
    for (const auto number : {&UvSummary::max_abs_u, &UvSummary::max_abs_v, &UvSummary::shortest, &UvSummary::longest,
                              &UvSummary::short_end, &UvSummary::shortest_of_array})
      CHECK(own_uv.*number == uv.*number);
  });
}

TEST_CASE("cells with one sample each have no scatter, on any number of ranks", "[cli][quick]") {
  const auto one = torch::full({1}, 3e4, torch::kFloat64);
  const Part all(Visibilities(Baselines::in_lambda(one, one), torch::ones({2, 1}, torch::kComplexDouble),
                              torch::ones({2, 1}, torch::kFloat64)));
  CHECK(all.averager.scatter().cells == 0);
  run_as_threads(2, [&](Communicator& communicator) {
    const auto part = part_of(all.visibilities, {communicator.rank(), communicator.rank() + 1});
    const auto scatter = scatter_of_ranks(part->averager.cell_statistics(), communicator);
    CHECK(scatter.cells == 0);
    CHECK(scatter.real == 0);
    CHECK(scatter.acceptable());
  });
}
