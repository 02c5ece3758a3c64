#include <mpol_cpp/cli/image_summary.h>

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/run_environment.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/isa.h>

namespace mpol::cli {
namespace {

using Json = nlohmann::ordered_json;

Json loss_of(const TrainResult& fit) {
  Json loss = Json::object();
  for (std::size_t i = 0; i < fit.columns.size(); ++i) loss[fit.columns[i]] = fit.loss.values.at(i);
  return loss;
}

Json seconds_of(const Timings& seconds) {
  return {{"start", seconds.start},       {"reading", seconds.reading}, {"gridding", seconds.gridding},
          {"training", seconds.training}, {"writing", seconds.writing}, {"total", seconds.total}};
}

}  // namespace

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
  json["normaliser"] = summary.normaliser;
  json["n_visibilities"] = summary.visibilities;
  json["n_cells"] = summary.cells;
  json["scatter"] = {{"real", summary.scatter.real}, {"imag", summary.scatter.imag}};
  json["flux_jy"] = summary.flux;
  json["epochs"] = summary.fit.epochs;
  json["stop_reason"] = to_string(summary.fit.stop_reason);
  json["seconds"] = seconds_of(summary.seconds);
  json["device"] = summary.device;
  json["dtype"] = summary.dtype;
  json["step"] = to_string(summary.fit.step);
  json["threads"] = summary.threads;
  json["instruction_set"] = std::string(to_string(selected_isa()));
  json["seed"] = summary.seed;
  json["versions"] = versions();
  return json.dump(2) + "\n";
}

std::string history_csv(const TrainResult& fit) {
  std::string text = fmt::format("epoch,{},learning_rate\n", fmt::join(fit.columns, ","));
  for (const auto& row : fit.history) {
    text += fmt::format("{}", row.epoch);
    for (const double value : row.values) text += fmt::format(",{:.17g}", value);
    text += fmt::format(",{:.17g}\n", row.learning_rate);
  }
  return text;
}

std::string scatter_warning(const Scatter& scatter) {
  if (scatter.cells == 0 || scatter.acceptable()) return {};
  const double median = std::max(scatter.real, scatter.imag);
  return fmt::format(
      "the data scatter {:.2f} times more than their weights say (medians {:.3f} real, {:.3f} imaginary; limit "
      "{}): the weights look too large by a factor of {:.2f}",
      median, scatter.real, scatter.imag, Scatter::limit, median * median);
}

std::string closing_words(const ImageSummary& summary, const std::string& folder, const std::string& warning) {
  const double flux = std::accumulate(summary.flux.begin(), summary.flux.end(), 0.0);
  const auto channels = summary.flux.size();
  std::string text =
      fmt::format("{}  {:.4f} over {} {}\n", summary.gaussian ? "chi^2/(2N)" : "-lnL/N    ", summary.reduced_chi_squared(),
                  summary.samples, summary.likelihood == "gridded" ? "cells" : "visibilities");
  text += channels == 1 ? fmt::format("flux        {:.4g} Jy\n", flux)
                        : fmt::format("flux        {:.4g} Jy in {} channels\n", flux, channels);
  text += fmt::format("ended       {} after {} epochs, {:.1f} s, {} step on {}\n", to_string(summary.fit.stop_reason),
                      summary.fit.epochs, summary.fit.seconds, to_string(summary.fit.step), summary.device);
  if (summary.fit.step == StepKind::eager) text += fmt::format("step        eager: {}\n", summary.fit.step_reason);
  text += fmt::format("files       {}\n", folder);
  if (!warning.empty()) text += fmt::format("warning     {}\n", warning);
  return text;
}

}  // namespace mpol::cli
