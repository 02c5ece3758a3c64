#include <mpol_cpp/cli/report/report.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/lambda_search.h>
#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/program/run_environment.h>
#include <mpol_cpp/cli/report/blocks_section.h>
#include <mpol_cpp/cli/report/html.h>
#include <mpol_cpp/cli/report/points_section.h>
#include <mpol_cpp/cli/report/report_figures.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol::cli {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string picture_in(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string verdict(const ReportContent& content) {
  if (content.warnings.empty()) return "<p class=\"calm\">Nothing was found that speaks against this image.</p>\n";
  std::string text = fmt::format("<div class=\"alarm\" role=\"note\"><strong>{}</strong><ul>\n",
                                 content.warnings.size() == 1 ? "Look at this before you believe the image:"
                                                              : "Look at these before you believe the image:");
  for (const auto& warning : content.warnings) text += fmt::format("<li>{}</li>\n", html::escaped(warning));
  return text + "</ul></div>\n";
}

double total_flux(const ImageSummary& summary) { return std::accumulate(summary.flux.begin(), summary.flux.end(), 0.0); }

std::string lead(const ReportContent& content) {
  const auto& summary = content.summary;
  const auto channels = summary.flux.size();
  return fmt::format(
      "<p class=\"lead\">{} Jy{}{}, χ²/2N = {:.3f} over {} {}, the fit {} after {} epochs. Residual image: peak {:.1f} times the "
      "noise.</p>\n",
      fmt::format("{:.4g}", total_flux(summary)),
      summary.errors ? fmt::format(" ± {:.2g} Jy", summary.errors->total_flux_error()) : "",
      channels == 1 ? "" : fmt::format(" in {} channels", channels), summary.reduced_chi_squared(), summary.samples,
      summary.of_cells ? "cells" : "visibilities",
      summary.fit.stop_reason == StopReason::converged ? "converged"
                                                       : "ended (" + std::string(to_string(summary.fit.stop_reason)) + ")",
      summary.fit.epochs, content.facts.residual_peak);
}

/// The panels of summary.png, in its order, and what they show in words.
std::string main_figures(const ReportContent& content, const std::string& picture) {
  const html::PanelSheet sheet("summary", 3, 2, report_panel_width, report_panel_height);
  const auto& facts = content.facts;
  const auto channel = facts.channels > 1 ? fmt::format(" of channel {}", facts.channels / 2) : std::string();
  auto text = sheet.definition(picture) + "<div class=\"figures\">\n";
  text += sheet.figure(1,
                       fmt::format("The image{}: brightness up to {:.3g} Jy/arcsec² in a field of {:.3g} arcsec", channel,
                                   facts.peak, facts.cell_size * static_cast<double>(facts.npix)),
                       "The image" + channel + ": the model that fits data and priors.");
  text += sheet.figure(0, "The dirty image" + channel + " with its beam and a scale bar",
                       "The dirty image" + channel + ", Briggs weights of robust 0.5.");
  text += sheet.figure(2, fmt::format("The residual image{}: its peak is {:.1f} times the noise", channel, facts.residual_peak),
                       "What is left of it when the model is taken away, in units of the noise that the weights promise.");
  text += sheet.figure(4, "Amplitude against baseline length: data as points, the model as a line",
                       "Amplitudes in rings of baseline length; the noise's own share is taken out of those of the data.");
  text += sheet.figure(3, "The points of the uv plane that were observed", "Where the uv plane was sampled.");
  text += sheet.figure(5, "The loss and its terms over the epochs", "Loss and its terms over the epochs.");
  return text + "</div>\n";
}

/// Residuals of each spectral window or file, beside the histogram of all.
std::string parts_table(const FitFacts& facts) {
  if (facts.parts.empty()) return {};
  std::vector<std::vector<std::string>> rows;
  for (const auto& part : facts.parts) {
    const auto& residuals = part.statistics;
    rows.push_back({part.name, fmt::format("{}", part.samples), fmt::format("{:.4g}", part.weight),
                    fmt::format("{:.3f}", residuals.sigma_factor), fmt::format("{:.3f}", residuals.standard_deviation),
                    fmt::format("{:.3g}", residuals.weight_factor()), fmt::format("{:.2g}", 100 * residuals.beyond_four)});
  }
  return html::table({"part of the data", "samples", "mean weight (Jy⁻²)", "scatter (σ)", "standard deviation (σ)",
                      "weights times this fit", "beyond 4 σ (%)"},
                     rows);
}

std::string residual_figures(const ReportContent& content, const std::string& picture) {
  const html::PanelSheet sheet("report", 2, 2, report_panel_width, report_panel_height);
  const auto& statistics = content.facts.residuals;
  auto text = sheet.definition(picture) + "<div class=\"figures\">\n";
  text += sheet.figure(
      0, fmt::format("Histogram of the residuals: they scatter {:.2f} times what the weights say", statistics.sigma_factor),
      "Residuals (data minus model) in units of σ, beside the Gaussian of the weights and that of their own scatter.");
  text +=
      sheet.figure(1, fmt::format("The same on a logarithmic axis: {:.2g} % lie beyond four sigma", 100 * statistics.beyond_four),
                   "The same, logarithmic: outliers show at its ends.");
  text += sheet.figure(2, "Mean brightness in rings about the middle of the flux",
                       "Mean brightness in rings about the middle of the flux, not deprojected.");
  text += sheet.figure(3, fmt::format("The residual over {:.3g} arcsec, beyond the field", content.facts.wide_width),
                       "The residual beyond the field, naturally weighted: sources outside show here.");
  return text + "</div>\n" + parts_table(content.facts);
}

std::string figures_section(const ReportContent& content) {
  const auto summary = picture_in(content.folder / "summary.png"), report = picture_in(content.folder / "report.png");
  std::string text;
  if (!summary.empty()) text += html::section("Image and data", main_figures(content, summary));
  if (!report.empty()) text += html::section("Residuals", residual_figures(content, report));
  if (summary.empty() || report.empty())
    text += html::section(
        "Pictures",
        "<p>Pictures are missing, because gnuplot is not there or did not draw them; figures/ holds what it would draw.</p>\n");
  return text;
}

/// Where errors were sampled.
std::string errors_section(const ReportContent& content) {
  if (!content.summary.errors) return {};
  const auto& errors = *content.summary.errors;
  auto text = fmt::format(
      "<p>From {} fits of simulated data of this image, with {:.3g} times the noise that the weights say, as the residuals and "
      "their image show it. What calibration errors do to single places they do not know.</p>\n",
      errors.samples, errors.noise_factor);
  if (const auto picture = picture_in(content.folder / "errors.png"); !picture.empty()) {
    const html::PanelSheet sheet("errors", 3, 1, report_panel_width, report_panel_height);
    text += sheet.definition(picture) + "<div class=\"figures\">\n";
    text += sheet.figure(0, "The image with contours of its significance",
                         "The image at the resolution of the beam, with contours where it is 3, 5, 10, 20 … times its error.");
    text += sheet.figure(1, "The error of each pixel", "Its error: noise, and what the priors take away.");
    text += sheet.figure(2, "The image over its error", "The image over its error.");
    text += "</div>\n";
  }
  const auto& channels = errors.channels;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t channel = 0; channel < channels.flux_error.size(); ++channel) {
    rows.push_back({fmt::format("{}", channel), fmt::format("{:.4g}", content.summary.flux.at(channel)),
                    fmt::format("{:.2g}", channels.flux_error[channel]), fmt::format("{:+.2g}", channels.flux_bias[channel]),
                    fmt::format("{:.2g}", channels.correlation_length[channel]),
                    fmt::format("{:.3g}", channels.error_factor[channel])});
  }
  return html::section("Errors", text + html::table({"channel", "flux (Jy)", "its error (Jy)", "of it bias (Jy)",
                                                     "errors alike within (″)", "map over how fits differ"},
                                                    rows));
}

/// Where structures were judged.
std::string structures_section(const ReportContent& content) {
  const auto& structures = content.summary.structures;
  if (structures.empty()) return {};
  std::string text = fmt::format(
      "<p>Each marked region was filled from its surroundings, and the cheapest image without the structure was looked for, "
      "whatever it is elsewhere. A structure is real at {:g} % when even that image costs data and priors more than the credible "
      "region allows, wherever in the image such a region might have been marked. Calibration errors are not accounted "
      "for.</p>\n<ul>\n",
      100 * level_of_structures);
  for (const auto& each : structures) text += "<li>" + html::escaped(each.verdict()) + "</li>\n";
  text += "</ul>\n";
  if (const auto picture = picture_in(content.folder / "structures.png"); !picture.empty()) {
    const html::PanelSheet sheet("structures", 4, static_cast<int>(structures.size()), report_panel_width, report_panel_height);
    text += sheet.definition(picture) + "<div class=\"figures\">\n";
    int panel = 0;
    for (const auto& each : structures) {
      const auto& name = each.name;
      text += sheet.figure(panel++, "The image with the outline of " + name, "The image, and what was marked: " + name + ".");
      text += sheet.figure(
          panel++, "The image with " + name + " filled smoothly from its surroundings",
          "The region filled: the data then differ from it by " + fmt::format("{:.3g}", each.filled_excess) + " in F.");
      text += sheet.figure(panel++, "The cheapest image without the structure " + name,
                           "The cheapest image without it: " + fmt::format("{:.3g}", each.least_excess) + " in F.");
      text += sheet.figure(panel++, "The image minus the cheapest one without the structure " + name,
                           "The image minus that one: what the structure would have to be made of.");
    }
    text += "</div>\n";
  }
  std::vector<std::vector<std::string>> rows;
  rows.reserve(structures.size());
  for (const auto& each : structures) {
    rows.push_back({each.name, each.is_real ? "real" : "not proven", fmt::format("{:.1f}", each.sigma),
                    fmt::format("{:.4g}", each.filled_excess), fmt::format("{:.4g}", each.least_excess),
                    fmt::format("{:.4g}", each.bound), fmt::format("{:.4g}", each.bound_of_image)});
  }
  return html::section("Structures",
                       text + html::table({"structure", "verdict", "sigma", "F filled − F image", "F least − F image",
                                           "allowed: γ − F image", "γ of all pixels − F image"},
                                          rows));
}

std::string choices_section(const ImageSummary& summary) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& choice : summary.choices) rows.push_back({"--" + choice.name, choice.value, choice.reason});
  for (const auto& lambda : summary.lambdas) {
    if (lambda.is_given) continue;
    auto option = lambda.name;
    std::replace(option.begin(), option.end(), '_', '-');
    rows.push_back(
        {"--" + option, value_words(lambda),
         lambda.in_units ? fmt::format("{}, {} U in units of the noise", lambda.how, units_words(lambda)) : lambda.how});
  }
  if (rows.empty()) return {};
  return html::section("What was chosen", html::table({"option", "value", "why"}, rows));
}

std::string frequency_words(const Tensor& frequencies) {
  if (!frequencies.defined()) return "unknown";
  const double low = frequencies.min().item<double>() / 1e9, high = frequencies.max().item<double>() / 1e9;
  return low == high ? fmt::format("{:.6g} GHz", low) : fmt::format("{:.6g} to {:.6g} GHz", low, high);
}

/// What was read of files that have flags, and left out.
void add_readings(Rows& rows, const std::vector<std::string>& readings) {
  for (const auto& text : readings) {
    const auto reading = nlohmann::json::parse(text);
    const auto name = std::filesystem::path(reading.at("file").get<std::string>()).filename().string();
    const auto of_file = readings.size() > 1 ? " of " + name : std::string();
    std::vector<std::string> reasons;
    for (const auto& [reason, count] : reading.at("dropped").items()) {
      auto words = reason;
      std::replace(words.begin(), words.end(), '_', ' ');
      if (count.get<std::int64_t>() > 0) reasons.push_back(fmt::format("{} {}", count.get<std::int64_t>(), words));
    }
    rows.emplace_back("read" + of_file,
                      fmt::format("{}, {} of {} samples", reading.at("column").get<std::string>(),
                                  reading.at("kept").get<std::int64_t>(), reading.at("samples").get<std::int64_t>()));
    rows.emplace_back("left out" + of_file, reasons.empty() ? "nothing" : fmt::format("{}", fmt::join(reasons, ", ")));
  }
}

std::string data_section(const ReportContent& content) {
  const auto& data = content.data;
  const auto& observation = data.observation;
  const auto& uv = content.uv;
  const auto& weights = content.summary.weights;
  const auto& scatter = content.summary.scatter;
  Rows rows = {{"file", content.name}};
  add_readings(rows, content.readings);
  if (!observation.object.empty()) rows.emplace_back("object", observation.object);
  if (!observation.telescope.empty()) rows.emplace_back("telescope", observation.telescope);
  if (const auto& beam = content.facts.primary_beam) {
    rows.emplace_back("primary beam",
                      fmt::format("{:.3g}″ wide at half power ({}), at the image's flux {:.3g} of its middle; the image "
                                  "is of the sky times it (mpol pbcor takes it out)",
                                  beam->fwhm, beam->antennas, beam->at_flux));
  }
  if (!observation.date.empty()) rows.emplace_back("date", observation.date);
  if (observation.stokes != Stokes::i) rows.emplace_back("polarisation", stokes_text(observation.stokes));
  rows.emplace_back("visibilities", fmt::format("{} in {} channel{}, {} occupied uv cells", content.summary.visibilities,
                                                data.nchan, data.nchan == 1 ? "" : "s", content.summary.cells));
  rows.emplace_back("frequency", frequency_words(data.frequencies));
  rows.emplace_back("baselines", fmt::format("{:.4g} to {:.4g} λ (read as {}); 5 % lie below {:.4g} λ", uv.shortest, uv.longest,
                                             content.uv_unit, uv.short_end));
  if (uv.shortest > 0) {
    rows.emplace_back("scales", fmt::format("fringes of {:.3g}″ to {:.3g}″; structure beyond {:.3g}″ is not recovered",
                                            1 / (uv.longest * units::arcsec), 1 / (uv.shortest * units::arcsec),
                                            0.6 / (uv.shortest * units::arcsec)));
  }
  rows.emplace_back("weights", fmt::format("{:.4g} to {:.4g} Jy⁻²; noise of a point source {:.3g} Jy", weights.least,
                                           weights.largest, 1 / std::sqrt(weights.sum)));
  rows.emplace_back("scatter in uv cells",
                    scatter.cells == 0
                        ? "unknown: no cell holds two samples"
                        : fmt::format("{:.3f} real, {:.3f} imaginary, times what the weights say", scatter.real, scatter.imag));
  return html::section("Data", html::facts(rows));
}

std::string fit_section(const ReportContent& content) {
  const auto& summary = content.summary;
  const auto& facts = content.facts;
  Rows rows = {{"field", fmt::format("{:.4g}″: {} pixels of {:.4g}″", facts.cell_size * static_cast<double>(facts.npix),
                                     facts.npix, facts.cell_size)}};
  if (!content.beams.empty()) {
    const auto& beam = content.beams[content.beams.size() / 2];
    rows.emplace_back("beam of the dirty image", fmt::format("{:.3g}″ × {:.3g}″, position angle {:.1f}°", beam.major, beam.minor,
                                                             beam.position_angle / units::degree));
  }
  rows.emplace_back("likelihood", summary.likelihood + ", " + choice_name(facts.noise, noise_choices) + " noise");
  rows.emplace_back("χ²", fmt::format("{:.6g}; χ²/2N {:.4f}", summary.chi_squared, summary.reduced_chi_squared()));
  rows.emplace_back(
      "residuals",
      fmt::format("scatter {:.3f} times what the weights say (standard deviation {:.3f}), {:.2g} % beyond four sigma",
                  facts.residuals.sigma_factor, facts.residuals.standard_deviation, 100 * facts.residuals.beyond_four));
  for (std::size_t i = 0; i < summary.fit.columns.size(); ++i)
    rows.emplace_back("loss, " + summary.fit.columns[i], fmt::format("{:.6g}", summary.fit.loss.values.at(i)));
  rows.emplace_back("optimiser", fmt::format("{} ({})", to_string(summary.optimizer), summary.optimizer_reason));
  rows.emplace_back(
      "end", fmt::format("{} after {} epochs{}", to_string(summary.fit.stop_reason), summary.fit.epochs,
                         summary.fit.gap ? fmt::format("; the loss is at most {:.3g} above its least value", *summary.fit.gap)
                                         : std::string()));
  return html::section("Fit", html::facts(rows));
}

std::string channels_section(const ImageSummary& summary) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < summary.residuals.size(); ++i) {
    const auto& residual = summary.residuals[i];
    rows.push_back({fmt::format("{}", i), fmt::format("{:.4g}", summary.flux[i]), fmt::format("{:.3g}", residual.noise),
                    fmt::format("{:.2f}", residual.rms / residual.noise), fmt::format("{:.1f}", residual.peak / residual.noise)});
  }
  return html::section(
      "Channels",
      html::table({"channel", "flux (Jy)", "noise (Jy/beam)", "residual rms / noise", "residual peak / noise"}, rows));
}

std::string lambdas_section(const ImageSummary& summary) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& lambda : summary.lambdas)
    rows.push_back({lambda.name, value_words(lambda), lambda.in_units ? units_words(lambda) : "-", lambda.how});
  if (rows.empty()) return html::section("Regularisers", "<p>None.</p>\n");
  auto text = html::table({"term", "λ", "λ in units of the noise", "how"}, rows);
  if (!summary.filled.empty())
    text += fmt::format("<p>Of the first image {}: λ that nobody gave are set for that.</p>\n", filled_words(summary.filled));
  if (summary.noise) text += fmt::format("<p>The noise of the image is {}.</p>\n", noise_words(*summary.noise));
  return html::section("Regularisers", text);
}

std::string scan_section(const ReportContent& content) {
  if (!content.summary.scan) return {};
  const auto& found = *content.summary.scan;
  std::vector<std::string> names;
  for (const auto& axis : found.axes) names.push_back(axis.term + " (U)");
  const bool white = found.best().kind != Score::folds;
  names.insert(names.end(),
               {white ? "score, χ²/2N expected of new data" : "score, χ²/2N of held-out data", "χ²/2N of fitted data", ""});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < found.points.size(); ++i) {
    std::vector<std::string> row;
    for (const double c : found.points[i].c) row.push_back(fmt::format("{:.3g}", c));
    row.push_back(fmt::format("{:.5f}", found.points[i].score()));
    row.push_back(fmt::format("{:.5f}", found.points[i].train()));
    row.push_back(i == found.chosen ? "chosen" : found.is_as_good(i) ? "as good" : "");
    rows.push_back(std::move(row));
  }
  auto text = white ? fmt::format("<p>{} points, {}.</p>\n", found.points.size(), words_of_choice(found.best().kind))
                    : fmt::format("<p>{} points, {} folds ({}).</p>\n", found.points.size(), found.best().folds.size(),
                                  html::escaped(found.folds_kind));
  if (const auto& check = content.summary.split_check)
    text += fmt::format("<p>{}.</p>\n", html::escaped(words_of_check(*check, found)));
  if (const auto words = diagnostic_words(found); !words.empty()) text += fmt::format("<p>{}.</p>\n", html::escaped(words));
  if (const auto picture = picture_in(content.folder / "scan.png"); !picture.empty()) {
    text += fmt::format(
        "<figure><img alt=\"Scores of the points that cross-validation tried\" src=\"{}\"><figcaption>Scores of all "
        "points.</figcaption></figure>\n",
        html::png_address(picture));
  }
  return html::section("Cross-validation", text + html::table(names, rows));
}

std::string run_section(const ReportContent& content) {
  const auto& summary = content.summary;
  const auto& seconds = summary.seconds;
  Rows rows = {{"command", content.command}};
  rows.emplace_back("device",
                    fmt::format("{} ({}), {}", summary.device, summary.device_reason, choice_name(summary.dtype, dtype_choices)));
  auto times = fmt::format("start {:.2f}, reading {:.2f}, gridding {:.2f}, training {:.2f}, writing {:.2f}", seconds.start,
                           seconds.reading, seconds.gridding, seconds.training, seconds.writing);
  if (summary.scan) times += fmt::format(", cross-validation {:.2f}", seconds.crossval);
  rows.emplace_back("seconds", times + fmt::format("; {:.2f} in all", seconds.total));
  rows.emplace_back("memory", fmt::format("{:.0f} MiB estimated, {:.0f} MiB at most taken", summary.estimated_memory / 0x1p20,
                                          peak_memory() / 0x1p20));
  for (const auto& [name, version] : versions()) rows.emplace_back(name, version);
  return html::section("Run", html::facts(rows));
}

std::string settings_section(const ReportContent& content) {
  std::string lines;
  for (const auto& line : content.settings) lines += html::escaped(line) + "\n";
  return html::section(
      "Settings", "<p>As in run.toml, from which <code>mpol image --config run.toml -o OUT</code> repeats the run.</p>\n<pre>" +
                      lines + "</pre>\n");
}

}  // namespace

std::string report_html(const ReportContent& content) {
  const auto& object = content.data.observation.object;
  const auto title = (object.empty() ? std::string() : object + ": ") + content.name;
  return html::page("mpol image, " + title,
                    "<h1>" + html::escaped(title) + "</h1>\n" + lead(content) + verdict(content) + figures_section(content) +
                        errors_section(content) + structures_section(content) + choices_section(content.summary) +
                        data_section(content) + (content.summary.blocks ? blocks_section(*content.summary.blocks) : "") +
                        (content.summary.points ? points_section(*content.summary.points) : "") + fit_section(content) +
                        channels_section(content.summary) + lambdas_section(content.summary) + scan_section(content) +
                        run_section(content) + settings_section(content));
}

}  // namespace mpol::cli
