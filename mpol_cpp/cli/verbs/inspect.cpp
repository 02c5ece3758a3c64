#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/cli/options/number_lists.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/host/host_memory.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/train/memory_estimate.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>
#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp inspect_help = {"inspect", "Say what is in a file of visibilities, and which grid suits it",
                                   "Example:\n  mpol inspect vis.npz"};

using Json = nlohmann::ordered_json;

struct InspectOptions {
  OutputOptions output;
  DataOptions data;
};

/// Range and spread of the weights of all channels.
struct WeightSummary {
  double smallest = 0, largest = 0, sum = 0;
};

WeightSummary summarize_weights(const Visibilities& visibilities) {
  const auto& weights = visibilities.weights();
  return {weights.min().item<double>(), weights.max().item<double>(), sum_in_float64(weights)};
}

Json describe_uv(const UvSummary& uv) {
  return {{"max_abs_u", uv.max_abs_u},
          {"max_abs_v", uv.max_abs_v},
          {"shortest", uv.shortest},
          {"longest", uv.longest},
          {"five_percent_below", uv.short_end}};
}

/// Scatter in cells of the grid, null when the baselines do not fit on it.
Json describe_scatter(const Visibilities& visibilities, const GridCoords& coords) {
  if (!coords.data_fit(visibilities.baselines().max_abs_u(), visibilities.baselines().max_abs_v())) return nullptr;
  const DataAverager averager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off));
  const auto& scatter = averager.scatter();
  return {{"real", scatter.real}, {"imag", scatter.imag}, {"cells", scatter.cells}, {"limit", Scatter::limit}};
}

/// The memory of a fit with the settings that `mpol image` has by default.
MemoryEstimate fit_estimate(const Visibilities& visibilities, const GridCoords& coords, torch::Dtype dtype) {
  ImageOptions usual;
  usual.data.dtype = dtype;
  usual.epochs = choose_optimizer(usual).usual_epochs();
  return fit_memory(usual, coords.npix(), {visibilities.nchan()}, SampleSizes::of(visibilities), torch::kCPU);
}

Json describe_memory(const MemoryEstimate& estimate) {
  Json parts = Json::object();
  for (const auto& part : estimate.parts) parts[part.name] = part.bytes;
  return parts;
}

std::string reasons_of(const std::vector<Choice>& choices) {
  std::string text;
  for (const auto& choice : choices) text += (text.empty() ? "" : "; ") + choice.reason;
  return text;
}

Json describe(const InspectOptions& options, const Visibilities& visibilities) {
  const auto uv = summarize_uv(visibilities.baselines());
  const auto suggestion = choose_grid(visibilities);
  const GridCoords coords(options.data.cell_size.value_or(suggestion.coords.cell_size()),
                          options.data.npix.value_or(suggestion.coords.npix()));
  const auto weights = summarize_weights(visibilities);
  Json json;
  json["file"] = options.data.data.string();
  json["n_channels"] = visibilities.nchan();
  json["n_visibilities"] = visibilities.nvis();
  json["data_dtype"] = visibilities.data().scalar_type() == torch::kComplexDouble ? "complex128" : "complex64";
  json["uv_unit"] = uv_unit_name(options.data);
  json["uv_lambda"] = describe_uv(uv);
  json["weights"] = {{"smallest", weights.smallest}, {"largest", weights.largest}, {"sum", weights.sum}};
  json["point_source_noise_jy"] = 1 / std::sqrt(weights.sum);
  json["frequencies_hz"] = nullptr;
  if (const auto& frequencies = visibilities.frequencies(); frequencies.defined()) {
    json["frequencies_hz"] =
        std::vector<double>(frequencies.const_data_ptr<double>(), frequencies.const_data_ptr<double>() + frequencies.numel());
  }
  json["data_bytes"] = visibilities.memory_bytes();
  json["suggestion"] = {{"cell_size", suggestion.coords.cell_size()},
                        {"npix", suggestion.coords.npix()},
                        {"center_arcsec", center_json(suggestion.center)},
                        {"reason", reasons_of(choices_of(suggestion))}};
  const auto memory = fit_estimate(visibilities, coords, torch::kFloat32);
  json["grid"] = {{"cell_size", coords.cell_size()},
                  {"npix", coords.npix()},
                  {"fit_memory_bytes", memory.total()},
                  {"fit_memory_parts", describe_memory(memory)},
                  {"fit_memory", memory.words()}};
  stop_if_requested();
  json["scatter"] = describe_scatter(visibilities, coords);
  return json;
}

std::string frequency_words(const Json& frequencies) {
  if (frequencies.is_null()) return "unknown";
  const auto values = frequencies.get<std::vector<double>>();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return values.size() == 1 ? fmt::format("{:.6g} GHz", *low / 1e9)
                            : fmt::format("{:.6g} to {:.6g} GHz", *low / 1e9, *high / 1e9);
}

/// Medians of the scatter below this mean that the weights are too small, or that the data have no noise: where weights are right
/// they are 0.67 in cells of two samples, and more in others.
constexpr double least_scatter = 0.6;

/// What the larger median of the scatter in cells says of the weights.
std::string weight_words(double median) {
  if (median > Scatter::limit) {
    return fmt::format(
        "the weights look too large by a factor of {:.2f}, unless the source changes within cells: mpol weights "
        "takes it out",
        median * median);
  }
  if (median >= least_scatter) return "as the weights say";
  if (median < 0.01) return "hardly any: the weights are too small by 10000 or more, or the data have no noise of their own";
  return fmt::format("the weights look too small by a factor of {:.2f} or somewhat less: mpol weights measures it",
                     1 / (median * median));
}

std::string scatter_words(const Json& scatter, const Json& grid) {
  if (scatter.is_null())
    return fmt::format("unknown: the baselines do not fit on cells of {}\"", grid["cell_size"].get<double>());
  if (scatter["cells"].get<std::int64_t>() == 0) {
    return fmt::format("unknown: no cell of {}\" x {} holds two samples", grid["cell_size"].get<double>(),
                       grid["npix"].get<std::int64_t>());
  }
  const double real = scatter["real"], imag = scatter["imag"];
  return fmt::format("{:.3f} real, {:.3f} imaginary, in {} cells of {}\" x {}: {}", real, imag,
                     scatter["cells"].get<std::int64_t>(), grid["cell_size"].get<double>(), grid["npix"].get<std::int64_t>(),
                     weight_words(std::max(real, imag)));
}

std::string words(const Json& json) {
  const auto number = [](const Json& value) { return value.get<double>(); };
  const auto& uv = json["uv_lambda"];
  const auto& weights = json["weights"];
  const auto& grid = json["suggestion"];
  std::string text = fmt::format("file          {}\n", json["file"].get<std::string>());
  text += fmt::format("shape         {} channels of {} visibilities, {}, {}\n", json["n_channels"].get<std::int64_t>(),
                      json["n_visibilities"].get<std::int64_t>(), json["data_dtype"].get<std::string>(),
                      memory_words(number(json["data_bytes"])));
  text += fmt::format("frequency     {}\n", frequency_words(json["frequencies_hz"]));
  text +=
      fmt::format("baselines     {:.4g} to {:.4g} lambda; max |u| {:.6g}, max |v| {:.6g} (read as {})\n", number(uv["shortest"]),
                  number(uv["longest"]), number(uv["max_abs_u"]), number(uv["max_abs_v"]), json["uv_unit"].get<std::string>());
  text += fmt::format("weights       {:.4g} to {:.4g} Jy^-2; point source noise {:.3g} Jy\n", number(weights["smallest"]),
                      number(weights["largest"]), number(json["point_source_noise_jy"]));
  text += fmt::format("scatter       {}\n", scatter_words(json["scatter"], json["grid"]));
  const SkyOffset center = {number(grid["center_arcsec"][0]), number(grid["center_arcsec"][1])};
  text += fmt::format("suggestion    --cell-size {} --npix {}{}\n", number(grid["cell_size"]), grid["npix"].get<std::int64_t>(),
                      center == SkyOffset() ? "" : " --center " + offset_value(center));
  text += fmt::format("              {}\n", grid["reason"].get<std::string>());
  text += fmt::format("memory        for a fit with --npix {}: {}\n", json["grid"]["npix"].get<std::int64_t>(),
                      json["grid"]["fit_memory"].get<std::string>());
  return text;
}

void declare(OptionSet& set, InspectOptions& options) {
  declare(set, options.data);
  declare_mode(set, options.data);
  declare(set, options.output);
  set.describe("--out", "Folder for a summary.json with what is said; default: none is written");
  set.only({"--overwrite"}, "with --out", [&options] { return !options.output.out.empty(); });
}

/// A file that does not say its unit, and whose numbers are those of kilo-wavelengths or metres.
void warn_of_unit(const DataOptions& data, double longest) {
  constexpr double shortest_plausible = 1e4;  // wavelengths: 100 m at 3 m
  if (longest >= shortest_plausible || longest <= 0 || data.uv_unit || reads_a_set(data)) return;
  if (io::NpzReader(data.data).contains("uv_unit")) return;
  log_warning(
      fmt::format("the longest baseline, read in lambda, is only {:.4g}, and the suggested cells are large: are u and v in "
                  "klambda or m? state the unit (--uv-unit)",
                  longest));
}

int inspect(InspectOptions& options, const OptionSet& settings) {
  settle(options.data);
  begin_verb(settings, options.output);
  use_threads(options.data.threads);
  std::optional<OutputFolder> folder;
  if (!options.output.out.empty()) folder.emplace(options.output, settings.verb());
  const auto visibilities = read_visibilities(options.data);
  stop_if_requested();
  if (find_hermitian_pairs(visibilities).present()) {
    log_warning("the data hold Hermitian pairs: leave out the half with conjugated values at (-u, -v)");
  }
  const auto json = describe(options, visibilities);
  warn_of_unit(options.data, json["uv_lambda"]["longest"].get<double>());
  const auto summary = summary_text(json);
  return folder ? commit_with_summary(*folder, summary, options.output, words(json))
                : end_verb(options.output, summary, words(json));
}

}  // namespace

Verb add_inspect(CLI::App& program) { return add_verb<InspectOptions>(program, inspect_help, inspect); }

}  // namespace mpol::cli
