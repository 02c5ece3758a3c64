#include <mpol_cpp/cli/run/point_stage.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/options/sample_room.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/sharing/ranks.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>

namespace mpol::cli {
namespace {

[[noreturn]] void refuse_points(const ImageOptions& options, const std::string& limit, const std::string& remedy) {
  throw UsageError(error_text("--points", options.points, limit, remedy));
}

/// Places of the sources that were named, about the middle of the image.
std::vector<PointComponent> named_sources(const DataStage& stage, const SkyOffset& center) {
  std::vector<PointComponent> sources;
  const double half = stage.coords.cell_size() * static_cast<double>(stage.coords.npix()) / 2;
  for (const auto& [east, north] : parse_points(stage.options.points)) {
    PointComponent source{.east = east - center.east, .north = north - center.north, .flux = {}};
    if (std::max(std::abs(source.east), std::abs(source.north)) >= half) {
      refuse_points(stage.options, fmt::format("{:g},{:g} lies outside of the field of {:.4g}\"", east, north, 2 * half),
                    "take a larger --npix, or subtract that source before");
    }
    sources.push_back(std::move(source));
  }
  return sources;
}

std::string round_words(const PointRound& round) {
  const auto count = round.sources.size();
  auto words = fmt::format("points, round {:>2}: {} source{}", round.round, count, count == 1 ? "" : "s");
  if (round.has_found) return words + ", the last of them new\n";
  if (count > 0) words += fmt::format("; most changed: by {:.2g} of its error", round.change);
  return words + "\n";
}

}  // namespace

void check_points(const ImageOptions& options) {
  if (options.points.empty()) return;
  parse_points(options.points);
  if (!options.fit_blocks.empty())
    refuse_points(options, "gains of blocks are of all the data, and these sources would be out of them",
                  "leave out --fit-blocks: predict with --gains from a first run, and take its calibrated data");
  if (options.likelihood_kind().of_cells)
    refuse_points(options, "cell averages do not tell where in a pixel a source is",
                  "leave out --likelihood gridded: the exact one is as fast");
  if (!options.is_gaussian()) refuse_points(options, "sources are fitted for Gaussian noise", "leave out --noise");
  if (options.batch_size)
    refuse_points(options, "sources need images of all data", "leave out --batch-size, or give --batch-size auto");
  if (!choose_optimizer(options).is_convex())
    refuse_points(options, "sources need images that have converged", "leave out what asks for other optimizers, or take pogm");
  if (ranks()->size() > 1) refuse_points(options, "ranks share no sources", "start one process; its threads are all used");
}

Choice points_choice(const ImageOptions& options) {
  const auto named = parse_points(options.points).size();
  return {"points", options.points,
          named == 0 ? std::string("where a first image shows a source that is too sharp for its pixels")
                     : fmt::format("{} beside the image", named)};
}

FittedPoints fit_points_of(const DataStage& stage, Visibilities& visibilities) {
  const auto& options = stage.options;
  FittedPoints result{{}, visibilities.observation().center};
  const auto channels = channel_map(options, visibilities.nchan());
  const auto room = room_beside(visibilities, static_cast<double>(visibilities.data().nbytes()));
  RunImager imager(stage, points_name);
  auto how = PointFitOptions()
                 .searches(options.points == "auto")
                 .state(stage.state / points_name)
                 .fingerprint(stage.record.fingerprint())
                 .room(room);
  if (options.output.speaks()) how.on_round([](const PointRound& round) { fmt::print("{}", round_words(round)); });
  result.found = fit_points(stage.coords, visibilities, channels, named_sources(stage, result.center), imager, how);
  if (result.found.interrupted) return result;
  visibilities = without_points(visibilities, channels, result.found.sources, room);
  if (result.found.sources.empty() && options.output.speaks()) fmt::print("points: none is needed\n");
  for (std::size_t s = 0; s < result.found.sources.size(); ++s) {
    const auto words = point_words(result, s);
    if (options.output.speaks()) fmt::print("{}\n", words);
    stage.record.note("without " + words);
  }
  for (const auto& warning : points_warnings(result)) log_warning(warning);
  return result;
}

}  // namespace mpol::cli
