#include <mpol_cpp/cli/image/image_summary.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/device/device_memory.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

using Json = nlohmann::ordered_json;

Json loss_of(const TrainResult& fit) {
  Json loss = Json::object();
  for (std::size_t i = 0; i < fit.columns.size(); ++i) loss[fit.columns[i]] = fit.loss.values.at(i);
  return loss;
}

Json seconds_of(const ImageSummary& summary) {
  const auto& seconds = summary.seconds;
  Json json = {{"start", seconds.start},       {"reading", seconds.reading}, {"gridding", seconds.gridding},
               {"training", seconds.training}, {"writing", seconds.writing}, {"total", seconds.total}};
  if (summary.blocks) json["calibration"] = seconds.calibration;
  if (summary.points) json["points"] = seconds.points;
  if (summary.scan) json["crossval"] = seconds.crossval;
  if (summary.errors) json["errors"] = seconds.errors;
  if (!summary.structures.empty()) json["structures"] = seconds.structures;
  return json;
}

/// A point as {"tv": c, …, "chi_squared_per_number": χ²/2N of the fitted data}.
Json diagnostic_of(const Scan& scan, std::optional<std::size_t> point) {
  if (!point) return nullptr;
  Json json = Json::object();
  for (std::size_t axis = 0; axis < scan.axes.size(); ++axis) json[scan.axes[axis].term] = scan.points[*point].c[axis];
  json["chi_squared_per_number"] = scan.points[*point].train();
  return json;
}

/// The choice of a cross-validation, and what it took.
void add_scan(Json& json, const Scan& scan) {
  json["chosen"] = Json::object();
  for (std::size_t axis = 0; axis < scan.axes.size(); ++axis) {
    json["chosen"][scan.axes[axis].term] = {
        {"value", scan.lambda(scan.chosen, axis)}, {"unit_value", scan.best().c[axis]}, {"unit", scan.axes[axis].unit}};
  }
  json["at_bound"] = scan.at_bound();
  json["fits"] = scan.fits;
  json["crossval"] = {{"split", scan.folds_kind},
                      {"folds", scan.best().folds.size()},
                      {"folds_at_once", scan.folds_at_once},
                      {"points", scan.points.size()},
                      {"score", scan.best().score()},
                      {"tells_apart", !scan.is_flat()},
                      {"exhausted", scan.exhausted},
                      {"score_kind", to_string(scan.best().kind)}};
  if (scan.best().kind != Score::folds) json["crossval"]["degrees_of_freedom"] = scan.best().degrees_of_freedom;
  json["crossval"]["discrepancy"] = diagnostic_of(scan, scan.discrepancy());
  json["crossval"]["l_curve_corner"] = diagnostic_of(scan, scan.l_curve_corner());
}

/// Which weights folds of the other kind choose.
Json check_of(const SplitCheck& check, const Scan& scan) {
  Json json = {{"split", choice_name(check.split, split_choices)},
               {"points", check.points},
               {"agrees", check.agrees()},
               {"unit_value", Json::object()},
               {"decades", Json::object()}};
  for (std::size_t axis = 0; axis < check.c.size(); ++axis) {
    json["unit_value"][scan.axes[axis].term] = check.c[axis];
    json["decades"][scan.axes[axis].term] = check.decades[axis];
  }
  return json;
}

/// What the printed nll is, where it is not the first line's number: the same chi^2 over another number.
std::string nll_words(const ImageSummary& summary) {
  const double nll = summary.fit.loss.nll();
  if (summary.normalizer == static_cast<double>(summary.samples)) return {};
  const auto per = summary.normalizer == static_cast<double>(summary.cells) ? fmt::format("/(2 x {} cells)", summary.cells)
                   : summary.normalizer == static_cast<double>(summary.visibilities)
                       ? fmt::format("/(2 x {} visibilities)", summary.visibilities)
                       : std::string("/2");
  return fmt::format("nll         {:.6g}, the same {}{}\n", nll, summary.gaussian ? "chi^2" : "-2 ln L", per);
}

Json residual_of(const ImageSummary& summary) {
  Json json = {{"noise_jy_per_beam", Json::array()}, {"rms_jy_per_beam", Json::array()}, {"peak_jy_per_beam", Json::array()}};
  for (const auto& residual : summary.residuals) {
    json["noise_jy_per_beam"].push_back(residual.noise);
    json["rms_jy_per_beam"].push_back(residual.rms);
    json["peak_jy_per_beam"].push_back(residual.peak);
  }
  return json;
}

Json parts_of(const ImageSummary& summary) {
  Json all = Json::array();
  for (const auto& part : summary.parts) {
    const auto& residuals = part.statistics;
    all.push_back({{"name", part.name},
                   {"samples", part.samples},
                   {"mean_weight", part.weight},
                   {"sigma_factor", residuals.sigma_factor},
                   {"standard_deviation", residuals.standard_deviation},
                   {"weight_factor", residuals.weight_factor()},
                   {"beyond_four", residuals.beyond_four}});
  }
  return all;
}

Json errors_of(const ErrorSummary& errors) {
  const auto& channels = errors.channels;
  return {{"samples", errors.samples},
          {"noise_factor", errors.noise_factor},
          {"flux_error_jy", channels.flux_error},
          {"flux_bias_jy", channels.flux_bias},
          {"flux_left_jy", channels.flux_left},
          {"flux_unseen_jy", channels.flux_unseen},
          {"growth_width_arcsec", channels.growth_width},
          {"correlation_length_arcsec", channels.correlation_length},
          {"error_factor", channels.error_factor},
          {"share_below_error", channels.share_below_error}};
}

Json structures_of(const std::vector<StructureSummary>& structures) {
  Json all = Json::array();
  for (const auto& each : structures) {
    all.push_back({{"region", each.region},
                   {"real", each.is_real},
                   {"real_by_all_pixels", each.is_real_by_all_pixels},
                   {"level", level_of_structures},
                   {"sigma", each.sigma},
                   {"flux_removed_jy", each.flux},
                   {"pixels", each.pixels},
                   {"places", each.places},
                   {"f_image", each.f_image},
                   {"f_filled", each.f_image + each.filled_excess},
                   {"f_without", each.f_image + each.least_excess},
                   {"gamma", each.f_image + each.bound},
                   {"gamma_of_all_pixels", each.f_image + each.bound_of_image}});
  }
  return all;
}

std::string flux_error_words(const ImageSummary& summary) {
  return summary.errors ? fmt::format(" +- {:.2g} Jy", summary.errors->total_flux_error()) : std::string();
}

/// The residual of the channel that is fitted worst.
std::string remainder_words(const ImageSummary& summary) {
  const auto in_noise = [](const ResidualSummary& residual) { return residual.peak / residual.noise; };
  const auto worst = std::max_element(summary.residuals.begin(), summary.residuals.end(),
                                      [&](const auto& a, const auto& b) { return in_noise(a) < in_noise(b); });
  if (worst == summary.residuals.end()) return {};
  const auto channel = summary.residuals.size() > 1 ? fmt::format("channel {}: ", worst - summary.residuals.begin()) : "";
  return fmt::format("residual    {}rms {:.2f}, peak {:.1f} times the noise of {:.2g} Jy/beam\n", channel,
                     worst->rms / worst->noise, in_noise(*worst), worst->noise);
}

/// How far the loss is from its least value, as a part of what the regularisers have.
std::string gap_words(const TrainResult& fit) {
  const double regularizers = fit.loss.total() - fit.loss.nll();
  const auto part = regularizers > 0 ? fmt::format(", {:.2g} % of the regularisers' value", 100 * *fit.gap / regularizers) : "";
  return fmt::format("gap         the loss is at most {:.3g} above its least value{}\n", *fit.gap, part);
}

/// What tensors take of the GPUs of a list, the most that one of them has now and had at its peak; nothing without any.
std::optional<MemoryUse> device_memory(const std::string& devices) {
  std::optional<MemoryUse> most;
  std::istringstream names(devices);
  for (std::string name; std::getline(names, name, ',');) {
    const torch::Device device(name);
    if (device.is_cpu()) continue;
    const auto own = memory_use(device);
    if (!most) most = MemoryUse();
    most->in_use = std::max(most->in_use, own.in_use);
    most->peak = std::max(most->peak, own.peak);
  }
  return most;
}

Json memory_json(const ImageSummary& summary) {
  const auto process = memory_use(torch::kCPU);
  Json json = {{"estimated", summary.estimated_memory},
               {"in_use", static_cast<double>(process.in_use)},
               {"peak", static_cast<double>(process.peak)},
               {"samples_on_disk", summary.samples_on_disk},
               {"device_in_use", nullptr},
               {"device_peak", nullptr}};
  if (const auto device = device_memory(summary.device)) {
    json["device_in_use"] = device->in_use;
    json["device_peak"] = device->peak;
  }
  return json;
}

/// A number, or that of channels from the least to the largest.
std::string range_words(double one, const std::vector<double>& all) {
  if (all.empty()) return fmt::format("{:.3g}", one);
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  return *least == *most ? fmt::format("{:.3g}", *least) : fmt::format("{:.3g} to {:.3g}", *least, *most);
}

}  // namespace

double ErrorSummary::total_flux_error() const {
  double squares = 0, left = 0, unseen = 0;
  for (std::size_t channel = 0; channel < channels.flux_error.size(); ++channel) {
    const double own = std::hypot(channels.flux_left[channel], channels.flux_unseen[channel]);
    squares += channels.flux_error[channel] * channels.flux_error[channel] - own * own;
    left += channels.flux_left[channel];
    unseen += channels.flux_unseen[channel];
  }
  return std::hypot(std::sqrt(std::max(squares, 0.0)), left, unseen);
}

std::string noise_words(const FitNoise& noise) {
  const auto text = fmt::format("{:.3g} times what the weights say", noise.factor());
  if (noise.shared == 1) return text;
  return text + fmt::format(": {:.3g} by chi^2, times {:.3g} because visibilities share errors", noise.of_samples, noise.shared);
}

std::string filled_words(const std::vector<double>& shares) {
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  const bool is_least = *least <= least_filled;
  if (*least == *most)
    return fmt::format("{}{:.2g} % of the field stands out of the noise", is_least ? "at most " : "", 100 * *least);
  return fmt::format("{:.2g} %{} to {:.2g} % of the field stands out of the noise, by channel", 100 * *least,
                     is_least ? " or less" : "", 100 * *most);
}

std::string value_words(const LambdaSummary& lambda) { return range_words(lambda.value, lambda.of_channels); }

std::string units_words(const LambdaSummary& lambda) {
  return lambda.in_units ? range_words(*lambda.in_units, lambda.units_of_channels) : std::string();
}

std::string StructureSummary::verdict() const {
  const double jansky = std::accumulate(flux.begin(), flux.end(), 0.0);
  const auto what = fmt::format("{}, {:.3g} Jy: ", name, jansky);
  const auto without =
      fmt::format("F {:.3g} above the image's without it, {:.3g} allowed; {:.1f} sigma", least_excess, bound, sigma);
  const double percent = 100 * level_of_structures;
  return is_real ? fmt::format("{}real at {:g} % ({})", what, percent, without)
                 : fmt::format("{}not proven by these data at {:g} % ({})", what, percent, without);
}

std::string dry_summary(const ImageSummary& summary) {
  Json json;
  json["choices"] = choices_json(summary.choices);
  return summary_text(json);
}

std::string summary_json(const ImageSummary& summary) {
  Json json;
  json["loss"] = loss_of(summary.fit);
  json["likelihood"] = summary.likelihood;
  json["chi_squared"] = summary.chi_squared;
  json["reduced_chi_squared"] = summary.reduced_chi_squared();
  json["chi_squared_per_visibility"] = nullptr;
  if (summary.chi_squared_of_visibilities) {
    json["chi_squared_per_visibility"] = *summary.chi_squared_of_visibilities / (2.0 * static_cast<double>(summary.visibilities));
  }
  json["normalizer"] = summary.normalizer;
  json["center_arcsec"] = center_json(summary.center);
  if (summary.stokes != Stokes::i) json["stokes"] = to_string(summary.stokes);
  json["n_visibilities"] = summary.visibilities;
  json["n_cells"] = summary.cells;
  json["scatter"] = {{"real", summary.scatter.real}, {"imag", summary.scatter.imag}};
  json["flux_jy"] = summary.flux;
  json["residual"] = residual_of(summary);
  if (!summary.parts.empty()) json["parts"] = parts_of(summary);
  if (summary.errors) json["errors"] = errors_of(*summary.errors);
  if (!summary.why_no_errors.empty()) json["why_no_errors"] = summary.why_no_errors;
  if (!summary.structures.empty()) json["structures"] = structures_of(summary.structures);
  json["peak_signal_to_noise"] = summary.peaks.brightest;
  json["filled_share"] = nullptr;
  if (const auto& filled = summary.filled; !filled.empty())
    json["filled_share"] = std::accumulate(filled.begin(), filled.end(), 0.0) / static_cast<double>(filled.size());
  json["primary_beam"] = nullptr;
  if (const auto& beam = summary.primary_beam)
    json["primary_beam"] = {{"antennas", beam->antennas}, {"fwhm_arcsec", beam->fwhm}, {"power_at_flux", beam->at_flux}};
  json["noise"] = nullptr;
  if (const auto& noise = summary.noise)
    json["noise"] = {{"factor", noise->factor()}, {"of_visibilities", noise->of_samples}, {"shared", noise->shared}};
  json["lambda"] = Json::object();
  for (const auto& lambda : summary.lambdas) {
    Json unit = nullptr;
    if (lambda.in_units) unit = *lambda.in_units;
    auto& own = json["lambda"][lambda.name] = {{"value", lambda.value}, {"unit_value", unit}, {"how", lambda.how}};
    if (!lambda.of_channels.empty()) own["channels"] = {{"value", lambda.of_channels}, {"unit_value", lambda.units_of_channels}};
  }
  if (summary.blocks) json["blocks"] = blocks_json(*summary.blocks);
  if (summary.points) json["points"] = points_json(*summary.points);
  if (summary.scan) add_scan(json, *summary.scan);
  if (const auto& bound = summary.bound) {
    json["chi_squared_bound"] = {{"bound", bound->bound},
                                 {"part", summary.chi_squared / bound->bound},
                                 {"lambda_factor", bound->factor},
                                 {"fits", bound->fits}};
  }
  if (summary.split_check) json["crossval"]["split_check"] = check_of(*summary.split_check, *summary.scan);
  json["choices"] = choices_json(summary.choices);
  json["optimizer"] = to_string(summary.optimizer);
  json["optimizer_reason"] = summary.optimizer_reason;
  json["epochs"] = summary.fit.epochs;
  json["converged"] = summary.fit.stop_reason == StopReason::converged;
  json["gap"] = nullptr;
  if (summary.fit.gap) json["gap"] = *summary.fit.gap;
  json["stop_reason"] = to_string(summary.fit.stop_reason);
  json["seconds"] = seconds_of(summary);
  json["memory_bytes"] = memory_json(summary);
  json["device"] = summary.device;
  json["device_reason"] = summary.device_reason;
  if (summary.devices > 1) json["devices"] = {{"count", summary.devices}, {"shard", name_of(summary.shard)}};
  if (summary.ranks > 1) json["ranks"] = {{"count", summary.ranks}, {"shard", name_of(summary.shard)}};
  if (summary.channels_at_once) json["channels_at_once"] = *summary.channels_at_once;
  json["dtype"] = choice_name(summary.dtype, dtype_choices);
  json["step"] = to_string(summary.fit.step);
  json["step_reason"] = summary.fit.step_reason;
  return summary_text(json, summary.seed);
}

void write_history_csv(const std::filesystem::path& path, const TrainResult& fit) {
  AtomicFile file(path);
  file.write(fmt::format("epoch,{},learning_rate\n", fmt::join(fit.columns, ",")));
  for (const auto& row : fit.history) {
    auto text = fmt::format("{}", row.epoch);
    for (const double value : row.values) text += fmt::format(",{:.17g}", value);
    file.write(text + fmt::format(",{:.17g}\n", row.learning_rate));
  }
  file.commit();
}

std::string closing_words(const ImageSummary& summary, const std::string& folder, std::size_t warnings) {
  const double flux = std::accumulate(summary.flux.begin(), summary.flux.end(), 0.0);
  const auto channels = summary.flux.size();
  std::string text = fmt::format("{}  {:.4f} over {} {}\n", summary.gaussian ? "chi^2/(2N)" : "-lnL/N    ",
                                 summary.reduced_chi_squared(), summary.samples, summary.of_cells ? "cells" : "visibilities");
  text += nll_words(summary);
  text += channels == 1 ? fmt::format("flux        {:.4g} Jy{}\n", flux, flux_error_words(summary))
                        : fmt::format("flux        {:.4g} Jy{} in {} channels\n", flux, flux_error_words(summary), channels);
  if (!summary.why_no_errors.empty()) text += fmt::format("errors      none: {}\n", summary.why_no_errors);
  text += remainder_words(summary);
  if (summary.noise) text += fmt::format("noise       {}\n", noise_words(*summary.noise));
  if (!summary.filled.empty()) text += fmt::format("source      {}: lambda are set for that\n", filled_words(summary.filled));
  for (const auto& structure : summary.structures) text += fmt::format("structure   {}\n", structure.verdict());
  const bool has_steps = !is_proximal(summary.optimizer);
  const auto step = !has_steps ? std::string() : fmt::format(", {} step", to_string(summary.fit.step));
  text += fmt::format("ended       {} after {} epochs of {}, {:.1f} s{} on {} ({})\n", to_string(summary.fit.stop_reason),
                      summary.fit.epochs, to_string(summary.optimizer), summary.fit.seconds, step, summary.device,
                      summary.device_reason);
  if (summary.optimizer == OptimizerKind::adam && !summary.optimizer_is_asked_for)
    text += fmt::format("optimiser   adam: {}\n", summary.optimizer_reason);
  if (summary.fit.gap) text += gap_words(summary.fit);
  if (!step.empty() && summary.fit.step == StepKind::eager)
    text += fmt::format("step        eager: {}\n", summary.fit.step_reason);
  text += fmt::format("files       {}\n", folder);
  if (warnings > 0)
    text += fmt::format("warnings    {}, on stderr and at the head of report.html: read {} first\n", warnings,
                        warnings == 1 ? "it" : "them");
  return text;
}

}  // namespace mpol::cli
