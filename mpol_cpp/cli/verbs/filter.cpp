#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/matched_filter.h>
#include <mpol_cpp/cli/measuring/filter_templates.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/cli/run/device_choice.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/device/move.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/filter_figure.h>
#include <mpol_cpp/plot/image_panel.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp filter_help = {
    "filter", "Look for a line in visibilities by a matched filter",
    "Example:\n  mpol filter vis.npz --template cube.fits -o filter\n"
    "  mpol filter vis.npz --keplerian --mass 1 --distance 140 --inclination 35 --position-angle 60 "
    "--outer-radius 1.2 -o filter"};

struct FilterOptions {
  OutputOptions output;
  DataOptions data;
  TemplateOptions templates;
};

/// A template and what it found.
struct Filtered {
  LineTemplate line;
  FilterResponse found;
  FilterPeak peak;
  double seconds;  ///< that it took to filter the data
};

void declare(OptionSet& options, FilterOptions& filter) {
  auto& data = filter.data;
  declare_file(options, data);
  declare(options, filter.templates);
  options.number("--cell-size", data.cell_size, Range::positive(), "ARCSEC",
                 "Width of a pixel; default: the template's; of a disc a fifth of the finest fringe", Record::result);
  options.integer("--npix", data.npix, Range::between(2, 1e9),
                  "Pixels along each axis, even; default: the template's; of a disc as many as hold it", Record::result);
  declare_arrays(options, data);
  options.text("--device", data.device, "DEVICE", "auto, cpu, cuda, cuda:N or least-loaded", Record::manner);
  options.choice("--dtype", data.dtype, dtype_choices, "Precision", Record::result);
  declare_threads(options, data.threads);
  declare_set(options, data);
  declare_conjugate(options, data);
  declare(options, filter.output);
  data.set.mode = ImageMode::cube;
}

/// Radio convention, km/s.
double velocity_of(double frequency, double rest_frequency) {
  return units::speed_of_light * (1 - frequency / rest_frequency) / 1e3;
}

/// Where a position lies: its channel, and frequency and velocity as far as they are known, else NaN.
struct Place {
  double channel, frequency, velocity;
};

Place place_of(const FilterResponse& found, std::int64_t position, const std::optional<double>& rest) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  const double frequency = found.frequency.defined() ? found.frequency[position].item<double>() : unknown;
  return {found.middle_channel[position].item<double>(), frequency, rest ? velocity_of(frequency, *rest) : unknown};
}

nlohmann::ordered_json known(double value) { return std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr; }

/// Other lines and the continuum widen the response too: what is said names all of them.
void warn_of_noise(const Filtered& filtered) {
  const auto& peak = filtered.peak;
  if (peak.noise == 0) return;
  const double off = std::abs(peak.noise - 1);
  if (off <= 0.2 || off <= 3 * peak.noise_error) return;
  log_warning(fmt::format(
      "template {}: away from its peak the response scatters by {:.3g}, not 1: the weights look wrong by a factor of {:.3g} "
      "(`mpol weights` measures and mends that), or there are a continuum or other lines in the data",
      filtered.line.name, peak.noise, peak.noise * peak.noise));
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<Filtered> filter_all(const FilterOptions& options, const Visibilities& visibilities, torch::Device device) {
  std::vector<Filtered> all;
  const auto on_device = copy_to(visibilities, device);
  for (auto& line : line_templates(options.templates, options.data, visibilities)) {
    check_grid_holds(visibilities, options.data, line.coords);
    stop_if_requested();
    const auto begin = std::chrono::steady_clock::now();
    auto found = matched_filter(on_device, line.cube, line.coords, MatchedFilterOptions().dtype(options.data.dtype));
    const double seconds = seconds_since(begin);
    const auto peak = filter_peak(found.response[0], line.cube.size(0));
    all.push_back({std::move(line), std::move(found), peak, seconds});
    warn_of_noise(all.back());
  }
  return all;
}

std::string csv(const std::vector<Filtered>& all, const std::optional<double>& rest) {
  std::string text = "template,middle_channel,frequency_hz,velocity_km_s,response_sigma,amplitude,amplitude_error\n";
  for (std::size_t t = 0; t < all.size(); ++t) {
    const auto& found = all[t].found;
    for (std::int64_t p = 0; p < found.response.size(1); ++p) {
      const auto place = place_of(found, p, rest);
      text += fmt::format("{},{},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g}\n", t, place.channel, place.frequency, place.velocity,
                          found.response[0][p].item<double>(), found.amplitude[0][p].item<double>(),
                          found.amplitude_error[0][p].item<double>());
    }
  }
  return text;
}

nlohmann::ordered_json describe(const Filtered& filtered, const std::optional<double>& rest) {
  const auto& [line, found, peak, seconds] = filtered;
  const auto place = place_of(found, peak.position, rest);
  const nlohmann::ordered_json at_peak = {{"response", peak.response},
                                          {"middle_channel", place.channel},
                                          {"frequency_hz", known(place.frequency)},
                                          {"velocity_km_s", known(place.velocity)},
                                          {"amplitude", found.amplitude[0][peak.position].item<double>()},
                                          {"amplitude_error", found.amplitude_error[0][peak.position].item<double>()}};
  nlohmann::ordered_json json = {{"name", line.name},
                                 {"n_channels", line.cube.size(0)},
                                 {"n_positions", found.response.size(1)},
                                 {"cell_size", line.coords.cell_size()},
                                 {"npix", line.coords.npix()},
                                 {"peak", at_peak},
                                 {"lowest_response", found.response.min().item<double>()},
                                 {"noise_rms", nullptr},
                                 {"noise_rms_error", nullptr},
                                 {"seconds", seconds}};
  if (peak.noise > 0) {
    json["noise_rms"] = peak.noise;
    json["noise_rms_error"] = peak.noise_error;
  }
  return json;
}

std::string summary_json(const FilterOptions& options, const ChosenDevice& device, const std::vector<Filtered>& all,
                         const Visibilities& visibilities, const std::optional<double>& rest) {
  nlohmann::ordered_json json = {{"data", options.data.data.string()},
                                 {"n_channels", visibilities.nchan()},
                                 {"n_visibilities", visibilities.nvis() * visibilities.nchan()},
                                 {"line_frequency_hz", rest ? nlohmann::ordered_json(*rest) : nullptr},
                                 {"device", device.names()},
                                 {"dtype", choice_name(options.data.dtype, dtype_choices)},
                                 {"templates", nlohmann::ordered_json::array()}};
  for (const auto& filtered : all) json["templates"].push_back(describe(filtered, rest));
  return summary_text(json);
}

/// Against velocity, or else frequency, or else the channel.
plot::Page page_of(const std::vector<Filtered>& all, const std::optional<double>& rest) {
  const bool frequencies = all.front().found.frequency.defined();
  std::vector<plot::FilterCurve> curves;
  for (const auto& filtered : all) {
    plot::FilterCurve curve{filtered.line.name, {}, plot::to_vector(filtered.found.response[0])};
    for (std::int64_t p = 0; p < filtered.found.response.size(1); ++p) {
      const auto place = place_of(filtered.found, p, rest);
      curve.x.push_back(!frequencies ? place.channel : rest ? place.velocity : place.frequency / 1e9);
    }
    curves.push_back(std::move(curve));
  }
  return plot::filter_page(curves, !frequencies ? "channel" : rest ? "velocity (km/s)" : "frequency (GHz)");
}

std::string words(const std::vector<Filtered>& all, const std::optional<double>& rest, const OutputFolder& folder) {
  std::string text;
  for (const auto& filtered : all) {
    const auto place = place_of(filtered.found, filtered.peak.position, rest);
    text += fmt::format("{}: highest response {:.3g} sigma at channel {:.6g}", filtered.line.name, filtered.peak.response,
                        place.channel);
    if (std::isfinite(place.frequency)) text += fmt::format(", {:.9g} GHz", place.frequency / 1e9);
    if (std::isfinite(place.velocity)) text += fmt::format(", {:.4g} km/s", place.velocity);
    const auto at_peak = [&](const Tensor& values) { return values[0][filtered.peak.position].item<double>(); };
    text += fmt::format("; {:.4g} ± {:.2g} times the template\n", at_peak(filtered.found.amplitude),
                        at_peak(filtered.found.amplitude_error));
  }
  return text + fmt::format("files  {}\n", folder.path().string());
}

int filter_visibilities(FilterOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.data);
  settle(options.templates);
  use_threads(options.data.threads);
  const auto device = choose_one_device(options.data.device);
  OutputFolder folder(options.output, settings.verb());
  const auto visibilities = read_visibilities(options.data);
  const auto all = filter_all(options, visibilities, device.device);
  auto rest = line_frequency(options.templates, visibilities);
  if (!visibilities.frequencies().defined()) rest.reset();
  write_file_atomically(folder.staged("filter.csv"), csv(all, rest));
  plot::write_figure(folder.staged("filter.png"), page_of(all, rest));
  const auto summary = summary_json(options, device, all, visibilities, rest);
  return commit_with_summary(folder, summary, options.output, words(all, rest, folder));
}

}  // namespace

Verb add_filter(CLI::App& program) { return add_verb<FilterOptions>(program, filter_help, filter_visibilities, {"filter.csv"}); }

}  // namespace mpol::cli
