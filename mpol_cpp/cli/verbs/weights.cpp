#include <array>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/residual_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/train/source_removal.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp weights_help = {"weights", "Compare the scatter of visibilities with their weights, and correct them",
                                   "Example:\n  mpol weights vis.npz -o weights --cell-size 0.03 --npix 180 --apply one"};

/// What weights are multiplied by.
enum class WeightFactors { none, one, channel };
/// How the source is taken out of the data.
enum class SourceRemoval {
  fit,   ///< by an image, and by the mean of each cell
  cells  ///< by the mean of each cell
};

constexpr auto factor_choices = std::to_array<NamedChoice<WeightFactors>>(
    {{"none", WeightFactors::none}, {"one", WeightFactors::one}, {"channel", WeightFactors::channel}});
constexpr auto removal_choices =
    std::to_array<NamedChoice<SourceRemoval>>({{"fit", SourceRemoval::fit}, {"cells", SourceRemoval::cells}});

struct WeightOptions {
  OutputOptions output;
  DataOptions data;
  WeightFactors apply = WeightFactors::none;
  SourceRemoval source = SourceRemoval::fit;
};

void declare(OptionSet& options, WeightOptions& weights) {
  declare(options, weights.data);
  declare_conjugate(options, weights.data);
  declare_mode(options, weights.data);
  options.choice("--apply", weights.apply, factor_choices,
                 "Write visibilities.npz with weights multiplied by one factor, or one for each channel", Record::result);
  options.choice(
      "--source", weights.source, removal_choices,
      "How the source is taken out before samples of a uv cell are compared: by an image that fits the data, and by the "
      "mean of each cell, or by that alone, which takes a source that is bright and far from the phase centre for noise",
      Record::result);
  declare(options, weights.output);
}

nlohmann::ordered_json describe(const ResidualStatistics& statistics) {
  nlohmann::ordered_json json = {{"n_samples", statistics.samples}, {"sigma_factor", nullptr}, {"weight_factor", nullptr},
                                 {"standard_deviation", nullptr},   {"mean", nullptr},         {"beyond_four_sigma", nullptr}};
  if (!(statistics.sigma_factor > 0)) return json;
  json["sigma_factor"] = statistics.sigma_factor;
  json["weight_factor"] = statistics.weight_factor();
  json["standard_deviation"] = statistics.standard_deviation;
  json["mean"] = statistics.mean;
  json["beyond_four_sigma"] = statistics.beyond_four;
  return json;
}

std::string csv(const ResidualHistogram& histogram) {
  std::string text = "low,high,density,expected\n";
  for (std::int64_t i = 0; i < histogram.density.size(0); ++i) {
    text +=
        fmt::format("{:.17g},{:.17g},{:.17g},{:.17g}\n", histogram.edges[i].item<double>(), histogram.edges[i + 1].item<double>(),
                    histogram.density[i].item<double>(), histogram.expected[i].item<double>());
  }
  return text;
}

/// Factors of the weights, (nchan, 1) float64. @throws DataError when a channel's scatter is not known
Tensor factors_of(const WeightOptions& options, const ResidualStatistics& all, const std::vector<GroupScatter>& channels) {
  auto factors = at::ones({static_cast<std::int64_t>(channels.size()), 1}, torch::kFloat64);
  const bool by_channel = options.apply == WeightFactors::channel;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    const auto& statistics = by_channel ? channels[c].statistics : all;
    if (!(statistics.sigma_factor > 0)) {
      throw DataError(error_text("--apply", choice_name(options.apply, factor_choices),
                                 by_channel ? fmt::format("channel {} has no two samples in a cell that differ", c)
                                            : "no cell has two samples that differ",
                                 "use larger cells of the uv plane: a smaller field, cell-size x npix"));
    }
    factors[static_cast<std::int64_t>(c)][0] = statistics.weight_factor();
  }
  return factors;
}

/// Residuals of the cells' means, of data without the source.
Tensor residuals_of(const WeightOptions& options, const GridCoords& coords, const Visibilities& visibilities) {
  if (options.source == SourceRemoval::cells) return cell_residuals(coords, visibilities);
  constexpr double tolerance = 5e-3;
  const auto field = source_field(coords, visibilities);
  stop_if_requested();
  const auto noise = without_source(visibilities, field, UsualImageOptions().tolerance(tolerance));
  stop_if_requested();
  return cell_residuals(coords, noise);
}

/// Outliers widen the mean square and hardly the median, from which sigma is taken.
void warn_of_outliers(const ResidualStatistics& all) {
  constexpr double most = 1.15;
  if (!(all.standard_deviation > most * all.sigma_factor)) return;
  log_warning(fmt::format(
      "the residuals have outliers: their standard deviation is {:.3g} sigma of the weights, the bulk scatters by {:.3g} "
      "({:.2g} % lie beyond four of those): weights cannot mend that; flag them, or fit with --likelihood loose "
      "--noise student",
      all.standard_deviation, all.sigma_factor, 100 * all.beyond_four));
}

/// What the scatter of all data says, and what was done about it.
std::string words(const WeightOptions& options, const ResidualStatistics& all, const OutputFolder& folder) {
  const auto files = fmt::format("files    {}\n", folder.path().string());
  if (!(all.sigma_factor > 0)) return "sigma    unknown: no cell has two samples that differ\n" + files;
  const auto* advice = options.apply == WeightFactors::none  ? "multiply the weights by"
                       : options.apply == WeightFactors::one ? "the weights in visibilities.npz are multiplied by"
                                                             : "those in visibilities.npz are corrected channel by channel, all "
                                                               "in all by";
  return fmt::format("sigma    looks {:.4g} times what the weights say: {} {:.4g}\n", all.sigma_factor, advice,
                     all.weight_factor()) +
         files;
}

int check_weights(WeightOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.data);
  auto chosen = choose_grid(options.data);
  const auto coords = chosen.coords;
  use_threads(options.data.threads);
  OutputFolder folder(options.output, settings.verb());
  const auto visibilities = chosen.take_visibilities(options.data);
  check_grid_holds(visibilities, options.data, coords);
  check_no_hermitian_pairs(visibilities);
  stop_if_requested();
  const auto residuals = residuals_of(options, coords, visibilities);
  const auto all = residual_statistics(residuals);
  if (options.source == SourceRemoval::fit) warn_of_outliers(all);
  const auto channels = scatter_by_group(residuals, at::arange(visibilities.nchan(), torch::kInt64).unsqueeze(1));
  const auto histogram = residual_histogram(residuals);
  auto json = describe(all);
  json["n_visibilities"] = visibilities.nvis() * visibilities.nchan();
  json["cell_size"] = coords.cell_size();
  json["npix"] = coords.npix();
  json["choices"] = choices_json(chosen.choices);
  json["applied"] = choice_name(options.apply, factor_choices);
  json["source"] = choice_name(options.source, removal_choices);
  json["channels"] = nlohmann::ordered_json::array();
  for (const auto& channel : channels) json["channels"].push_back(describe(channel.statistics));
  const auto summary = summary_text(json);
  write_file_atomically(folder.staged("histogram.csv"), csv(histogram));
  plot::write_figure(folder.staged("residuals.png"), plot::residual_page(histogram));
  if (options.apply != WeightFactors::none) {
    io::write_npz(folder.staged("visibilities.npz"), scale_weights(visibilities, factors_of(options, all, channels)));
  }
  return commit_with_summary(folder, summary, options.output, choice_words(chosen.choices) + words(options, all, folder));
}

}  // namespace

Verb add_weights(CLI::App& program) { return add_verb<WeightOptions>(program, weights_help, check_weights, {"histogram.csv"}); }

}  // namespace mpol::cli
