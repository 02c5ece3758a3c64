#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/matching/template_matching.h>
#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/cli/measuring/polar_plan.h>
#include <mpol_cpp/cli/measuring/template_library.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/options/polar_grid.h>
#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/cli/run/device_choice.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/polar_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp match_help = {"match", "Find the templates that an image resembles, turned and mirrored, in polar coordinates",
                                 "Example:\n  mpol match image.fits --templates lib.npz -o match\n"
                                 "  mpol match disc/image.fits --generate ring:0.2..0.8..7:0.1,spiral:0.4:0.1:10..30..5:2 "
                                 "--inclination 35 --position-angle 60 -o match"};

/// Part of the memory that is the comparison's; the rest is that of the channels it is done to.
constexpr double part_of_comparison = 0.5;

/// How much the bins of a map count.
enum class BinWeights {
  area,  ///< as much as they are large
  even   ///< alike
};

constexpr auto match_score_choices =
    std::to_array<NamedChoice<MatchScore>>({{"correlation", MatchScore::correlation}, {"cosine", MatchScore::cosine}});
constexpr auto mirror_choices = std::to_array<NamedChoice<Mirrors>>({{"both", Mirrors::both}, {"none", Mirrors::none}});
constexpr auto bin_weight_choices =
    std::to_array<NamedChoice<BinWeights>>({{"area", BinWeights::area}, {"even", BinWeights::even}});
constexpr auto angle_choices =
    std::to_array<NamedChoice<AngleSteps>>({{"parabola", AngleSteps::parabola}, {"bins", AngleSteps::bins}});

struct MatchVerbOptions {
  OutputOptions output;
  ImageFileOptions image;
  PolarGridOptions grid;
  TemplateLibraryOptions library;
  ImageComputing computing{.dtype = torch::kFloat32};  ///< scores to 1e-6, in half the time and memory
  std::optional<std::int64_t> keep;
  std::int64_t n_best = 5;
  MatchScore score = MatchScore::correlation;
  Mirrors mirrors = Mirrors::both;
  BinWeights weights = BinWeights::area;
  AngleSteps angles = AngleSteps::parabola;
  std::string channels;
  double keep_fraction = 1, memory_limit = 1;  ///< GiB
};

void declare(OptionSet& options, MatchVerbOptions& match) {
  declare(options, match.image);
  declare(options, match.library);
  declare(options, match.grid);
  options.integer("--n-best", match.n_best, Range::between(1, 1e6), "Matches of each channel, of different templates",
                  Record::result);
  options.choice("--score", match.score, match_score_choices, "Whether means are taken out before image and template meet",
                 Record::result);
  options.choice("--mirrors", match.mirrors, mirror_choices, "Whether templates are tried mirrored, too", Record::result);
  options.choice("--weights", match.weights, bin_weight_choices, "Bins count by their area, or alike", Record::result);
  options.choice("--angles", match.angles, angle_choices, "Angles between bins by a parabola, or whole bins", Record::result);
  options.integer("--keep", match.keep, Range::between(1, 1e9), "Templates that are turned, best by their profiles; default: all",
                  Record::result);
  options.number("--keep-fraction", match.keep_fraction, Range{0, false, 1}, "PART", "The same as a part of all", Record::result);
  options.number("--memory-limit", match.memory_limit, Range::positive(), "GIB",
                 "Memory for the channels and templates that are worked on at one time", Record::manner);
  options.text("--channels", match.channels, "LIST", "Channels to use, from 0, as in 0,3-7; default: all", Record::result);
  declare(options, match.computing);
  declare(options, match.output);
  options.only({"--keep-fraction"}, "without --keep", [&match] { return !match.keep; });
}

/// What was found, and how.
struct MatchResult {
  PolarGrid grid;
  TemplateLibrary library;
  std::int64_t nchan;
  Tensor best_map;  ///< (nr, nphi) float64, of the channel with the highest score
  std::int64_t best_channel;
  MatchOptions options;
  Matches matches;  ///< (nchan, n_best)
  std::string unit;
  double seconds = 0;  ///< of the match alone
};

MatchOptions match_options(const MatchVerbOptions& options, const PolarIntegrator& integrator) {
  auto match = MatchOptions()
                   .n_best(options.n_best)
                   .score(options.score)
                   .mirrors(options.mirrors)
                   .angles(options.angles)
                   .keep(options.keep)
                   .keep_fraction(options.keep_fraction)
                   .memory_budget(std::max<std::int64_t>(
                       1, static_cast<std::int64_t>(part_of_comparison * std::min(options.memory_limit, 1e6) * 0x1p30)));
  if (options.weights == BinWeights::area) match.weights(integrator.radius() / integrator.radius().max());
  return match;
}

/// Adds the matches of some channels, and keeps their map if one of them is the best so far.
void add_matches(MatchResult& result, const ChannelPlan::Block& block) {
  const Matches some{block.results[1], block.results[2], block.results[3], block.results[4]};
  const auto best = some.score.select(1, 0).argmax().item<std::int64_t>();
  const double score = some.score[best][0].item<double>();
  if (!result.best_map.defined() || score > result.matches.score[result.best_channel][0].item<double>()) {
    result.best_channel = block.begin + best;
    result.best_map = block.results[0][best].clone();
  }
  for (const auto part : {&Matches::index, &Matches::angle, &Matches::mirrored, &Matches::score}) {
    auto& all = result.matches.*part;
    all = all.defined() ? at::cat({all, some.*part}) : some.*part;
  }
}

MatchResult match_image(const MatchVerbOptions& options, const ChosenDevice& device, SkyCube& cube) {
  const auto& coords = cube.image().coords;
  const auto bins = with_bins_of_file(options.library, options.grid);
  const auto grid = chosen_grid(bins, coords);
  MatchResult result{grid, read_templates(options.library, grid), cube.nchan(), {}, 0, {}, {}, cube.image().unit, 0};
  stop_if_requested();
  const auto integrator = integrator_of(bins, grid, coords);
  result.options = match_options(options, integrator);
  std::mutex of_seconds;  // devices match at the same time
  auto plan = polar_plan(cube, integrator, options.computing.dtype);
  plan.then("match", 0, [&](const std::vector<Tensor>& maps) {
    stop_if_requested();
    const auto begin = std::chrono::steady_clock::now();
    const auto found = match_templates(maps[1], result.library.templates, result.options);
    std::vector<Tensor> results{maps[1], found.index.cpu(), found.angle.cpu(), found.mirrored.cpu(), found.score.cpu()};
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;  // the device has done it
    const std::lock_guard lock(of_seconds);
    result.seconds += took.count();
    return results;
  });
  run_plan(plan, {options.memory_limit, device.all, 1 - part_of_comparison},
           [&](const ChannelPlan::Block& block) { add_matches(result, block); });
  return result;
}

/// One row of what was found.
struct FoundTemplate {
  std::int64_t number;
  std::string name;
  double angle;  ///< degrees, North through East where the disc is face on
  bool mirrored;
  double score;
};

FoundTemplate found_at(const MatchResult& result, double position_angle, std::int64_t channel, std::int64_t rank) {
  const auto& matches = result.matches;
  const auto number = matches.index[channel][rank].item<std::int64_t>();
  double angle = std::fmod(matches.angle[channel][rank].item<double>() / units::degree + position_angle, 360);
  if (angle < 0) angle += 360;
  return {number, result.library.names[static_cast<std::size_t>(number)], angle, matches.mirrored[channel][rank].item<bool>(),
          matches.score[channel][rank].item<double>()};
}

std::string csv(const MatchResult& result, double position_angle) {
  std::string text = "channel,rank,template,name,angle_deg,mirrored,score\n";
  const int digits = result.matches.score.scalar_type() == torch::kFloat32 ? 7 : 10;  // that are more than rounding
  for (std::int64_t c = 0; c < result.matches.index.size(0); ++c) {
    for (std::int64_t rank = 0; rank < result.matches.index.size(1); ++rank) {
      const auto found = found_at(result, position_angle, c, rank);
      // Names hold no comma: --generate splits at them; a file's may, and is quoted.
      const bool quoted = found.name.find_first_of(",\"") != std::string::npos;
      fmt::format_to(std::back_inserter(text), "{},{},{},{},{:.10g},{},{:.{}g}\n", c, rank, found.number,
                     quoted ? nlohmann::json(found.name).dump() : found.name, found.angle, int{found.mirrored}, found.score,
                     digits);
    }
  }
  return text;
}

nlohmann::ordered_json describe(const FoundTemplate& found) {
  return {{"template", found.number},
          {"name", found.name},
          {"angle_deg", found.angle},
          {"mirrored", found.mirrored},
          {"score", found.score}};
}

std::string summary_json(const MatchVerbOptions& options, const ChosenDevice& device, const MatchResult& result) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  for (std::int64_t c = 0; c < result.matches.index.size(0); ++c)
    channels.push_back(describe(found_at(result, options.grid.geometry.position_angle, c, 0)));
  nlohmann::ordered_json json = {{"image", options.image.image.string()},
                                 {"templates", options.library.file.string()},
                                 {"generate", options.library.shapes},
                                 {"n_templates", result.library.templates.size()}};
  json.update(grid_summary(options.grid, result.grid));
  json.update({{"score", choice_name(options.score, match_score_choices)},
               {"weights", choice_name(options.weights, bin_weight_choices)},
               {"seconds", result.seconds},
               {"device", device.names()},
               {"dtype", choice_name(options.computing.dtype, dtype_choices)},
               {"channels", channels}});
  return summary_text(json);
}

plot::Page page_of(const MatchVerbOptions& options, const MatchResult& result) {
  const auto channel = result.best_channel;
  const auto found = found_at(result, options.grid.geometry.position_angle, channel, 0);
  const auto& map = result.best_map;
  const auto number = result.matches.index[channel][0];
  plot::MatchFigure figure;
  figure.title =
      fmt::format("{}{}: {:.1f}°{}, score {:.4f}", result.nchan > 1 ? fmt::format("channel {}, ", channel) : std::string(),
                  found.name, found.angle, found.mirrored ? ", mirrored" : "", found.score);
  figure.template_name = found.name;
  figure.mirrored = found.mirrored;
  figure.unit = unit_label(result.unit);
  figure.outer = result.grid.radius;
  figure.image = map;
  const Matches of_channel{result.matches.index[channel], result.matches.angle[channel], result.matches.mirrored[channel],
                           result.matches.score[channel]};
  figure.model = matched_templates(map, result.library.templates, of_channel, result.options);
  figure.scores = rotation_scores(map, result.library.templates, number, result.options);
  figure.first_angle = options.grid.geometry.position_angle;
  figure.first_mirrored_angle = figure.first_angle + 360 / static_cast<double>(result.grid.nphi);
  return plot::match_page(figure);
}

std::string words(const MatchVerbOptions& options, const MatchResult& result, const OutputFolder& folder) {
  const auto channel = result.best_channel;
  const auto found = found_at(result, options.grid.geometry.position_angle, channel, 0);
  const auto of_channel = result.nchan > 1 ? fmt::format(" (channel {})", channel) : std::string();
  return fmt::format("best   {}{} at {:.4g} deg{}: score {:.4g}\nfiles  {}\n", found.name, found.mirrored ? ", mirrored," : "",
                     found.angle, of_channel, found.score, folder.path().string());
}

int make_match(MatchVerbOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.image);
  settle(options.library);
  use_threads(options.image.threads);
  const auto device = choose_device(options.computing.device);
  OutputFolder folder(options.output, settings.verb());
  SkyCube cube(options.image.image, "IMAGE", parse_channels(options.channels));
  const auto result = match_image(options, device, cube);
  stop_if_requested();
  write_file_atomically(folder.staged("match.csv"), csv(result, options.grid.geometry.position_angle));
  plot::write_figure(folder.staged("match.png"), page_of(options, result));
  return commit_with_summary(folder, summary_json(options, device, result), options.output, words(options, result, folder));
}

}  // namespace

Verb add_match(CLI::App& program) { return add_verb<MatchVerbOptions>(program, match_help, make_match, {"match.csv"}); }

}  // namespace mpol::cli
