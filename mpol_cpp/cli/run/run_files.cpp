#include <mpol_cpp/cli/run/run_files.h>

#include <cmath>
#include <utility>
#include <vector>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/output/blocks_table.h>
#include <mpol_cpp/cli/output/points_table.h>
#include <mpol_cpp/cli/output/diagnostics_files.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/program/command_line.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/program/run_environment.h>
#include <mpol_cpp/cli/report/findings.h>
#include <mpol_cpp/cli/report/report.h>
#include <mpol_cpp/cli/run/block_stage.h>
#include <mpol_cpp/cli/run/bounded_weights.h>
#include <mpol_cpp/cli/run/image_results.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

/// The share of all channels' flux that lies where the image is no larger than its error.
double share_below_error(const ErrorSummary& errors, const std::vector<double>& flux) {
  double below = 0, all = 0;
  for (std::size_t channel = 0; channel < flux.size(); ++channel) {
    below += errors.channels.share_below_error[channel] * std::abs(flux[channel]);
    all += std::abs(flux[channel]);
  }
  return all > 0 ? below / all : 0;
}

/// The fewest epochs after which residuals tell something, of a fit that takes exactly so many as it is told.
constexpr std::int64_t fewest_epochs_to_judge = 50;

}  // namespace

double chi_squared_of_visibilities(const ImageOptions& options, const RunData& data, const Tensor& sky,
                                   const ImageSummary& summary) {
  if (!options.likelihood_kind().of_cells && options.is_gaussian()) return summary.chi_squared;
  return data.chi_squared_of_visibilities(sky);
}

void RunFiles::write(OutputFolder& folder, const FitOutcome& outcome) {
  const auto begin = seconds_since_start();
  if (!summary_.chi_squared_of_visibilities)
    summary_.chi_squared_of_visibilities = chi_squared_of_visibilities(options_, data_, outcome.sky, summary_);
  auto dirty =
      outcome.dirty ? *outcome.dirty : dirty_products(data_.fit_data(), outcome.sky, product_frame(data_.fit_data(), data_.uv()));
  const auto errors = errors_of(outcome, dirty.beams);
  ImageResults results{.coords = data_.coords(),
                       .sky = outcome.sky,
                       .dirty = std::move(dirty),
                       .frequencies = image_frequencies(data_.outline(), data_.groups().nchan()),
                       .data = data_.outline(),
                       .baselines = data_.visibilities().baselines(),
                       .scan = summary_.scan,
                       .errors = errors,
                       .structures = outcome.structures};
  describe_residuals(results.dirty);
  summary_.parts = results.dirty.remainder.parts;
  if (errors) summary_.errors = summary_of(*errors);
  if (outcome.samples && options_.keep_samples) results.kept_samples = outcome.samples->samples.images;
  const auto facts = judge(results.dirty, outcome.sky);
  stage_images(folder, results, summary_.fit, options_, record_);
  if (summary_.blocks) write_file_atomically(folder.staged("blocks.csv"), blocks_csv(*summary_.blocks));
  if (summary_.points) write_file_atomically(folder.staged("points.csv"), points_csv(*summary_.points));
  summary_.seconds.writing += seconds_since_start() - begin;
  summary_.seconds.total = seconds_since_start();
  summary_.estimated_memory = data_.estimate().total();
  summary_.samples_on_disk = disk_of_samples(data_.visibilities());
  stage_report(folder, facts, results.dirty.beams);
  stage_texts(folder, summary_, record_);
  replace_earlier(folder);
  remove_group_errors(folder.state());
  folder.commit();
  if (options_.output.json) fmt::print("{}", summary_json(summary_));
  else if (!options_.output.quiet) fmt::print("{}", closing_words(summary_, folder.path().string(), warnings_so_far().size()));
}

std::optional<MappedErrors> RunFiles::errors_of(const FitOutcome& outcome, const std::vector<Beam>& beams) const {
  if (!outcome.samples && !outcome.errors) return std::nullopt;
  if (beams.empty())
    log_warning("the dirty beam of a channel is no ellipse: the maps of errors are at the resolution of pixels, in Jy/pixel");
  if (outcome.errors) return outcome.errors;
  const auto& own = *outcome.samples;
  return MappedErrors{own.maps(outcome.sky, data_.coords(), beams), own.samples.images.size(0), own.noise_factor, own.is_usual};
}

void RunFiles::describe_residuals(const DirtyProducts& dirty) {
  for (std::int64_t channel = 0; channel < dirty.residual.size(0); ++channel) {
    const auto residual = dirty.residual[channel];
    const double noise = dirty.noise[static_cast<std::size_t>(channel)], rms = residual.square().mean().sqrt().item<double>();
    summary_.residuals.push_back({.noise = noise, .rms = rms, .peak = residual.abs().max().item<double>()});
  }
}

/// Measures the fit and warns of what speaks against it.
FitFacts RunFiles::judge(const DirtyProducts& dirty, const Tensor& sky) {
  if (summary_.blocks) judge_blocks(*summary_.blocks, data_.fit_data(), sky);
  auto facts = measure_fit({data_.coords(), data_.outline(), data_.uv(), imaging_of(options_), sky, dirty, *options_.sign});
  facts.data = summary_.peaks;
  summary_.primary_beam = facts.primary_beam;
  facts.noise = options_.noise;
  if (summary_.noise) facts.shared_noise = summary_.noise->shared;
  facts.cross_validated = summary_.scan.has_value();
  if (summary_.errors && !dirty.beams.empty()) facts.share_below_error = share_below_error(*summary_.errors, summary_.flux);
  facts.settled = summary_.fit.stop_reason == StopReason::converged ||
                  (summary_.fit.warnings.empty() && summary_.fit.epochs >= fewest_epochs_to_judge);
  facts.weights_were_doubted = data_.weights_are_doubted();
  for (const auto& finding : findings(facts)) log_warning(finding.text());
  if (const auto warning = bound_warning(summary_); !warning.empty()) log_warning(warning);
  return facts;
}

void RunFiles::stage_report(OutputFolder& folder, const FitFacts& facts, const std::vector<Beam>& beams) const {
  const ReportContent content{.summary = summary_,
                              .facts = facts,
                              .data = data_.outline(),
                              .uv = data_.uv(),
                              .name = options_.data.data.filename().string(),
                              .uv_unit = uv_unit_name(options_.data),
                              .beams = beams,
                              .command = command_line(),
                              .settings = record_.settings(),
                              .warnings = warnings_so_far(),
                              .readings = readings_so_far(),
                              .folder = folder.staged("report.html").parent_path()};
  write_file_atomically(folder.staged("report.html"), report_html(content));
}

/// What an earlier run in OUT wrote and this one does not: channels as files of their own, diagnostics.
void RunFiles::replace_earlier(OutputFolder& folder) const {
  if (folder.keeps_earlier_results()) {
    for (const auto& name : earlier_files(folder.path())) folder.replaces(name);
    if (!summary_.scan) folder.replaces(scan_name);
    if (!summary_.blocks) folder.replaces(blocks_name);
    if (!summary_.points) folder.replaces(points_name);
    folder.replaces(group_errors_name);
  }
  const bool figures = options_.diagnostics_interval || (before_ && before_->had_diagnostics());
  const bool events = options_.tensorboard || (before_ && before_->had_events());
  for (const auto& name : diagnostics_files(folder.path())) {
    if (!(is_of_events(name) ? events : figures)) folder.replaces(name);
  }
}

void RunFiles::keep_history(OutputFolder& folder) const {
  if (folder.keeps_earlier_results()) {
    write_history_csv(folder.state() / "history.csv", summary_.fit);
  } else {
    stage_record(folder, summary_.fit, record_, earlier_files(folder.path()));
    folder.commit();
  }
}

}  // namespace mpol::cli
