#include <mpol_cpp/cli/run/image_results.h>

#include <algorithm>
#include <utility>

#include <mpol_cpp/cli/image/error_sampling.h>
#include <mpol_cpp/cli/image/lambda_search.h>
#include <mpol_cpp/cli/output/loss_curves.h>
#include <mpol_cpp/cli/output/run_images.h>
#include <mpol_cpp/cli/report/report_figures.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/plot/figures/scan_figure.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/image_panel.h>
#include <mpol_cpp/plot/figures/summary_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

std::vector<std::string> history_lines(const RunRecord& record, const TrainResult& fit) {
  std::vector<std::string> lines = {fmt::format("mpol image, {} epochs, ended: {}", fit.epochs, to_string(fit.stop_reason))};
  for (const auto& line : record.image_history()) lines.push_back(line);
  return lines;
}

void stage_cube(OutputFolder& folder, const std::string& name, const Tensor& cube, const ImageResults& results,
                const io::FitsOptions& options, bool split) {
  if (split) io::write_fits_split_channels(folder.staged(name), cube, results.coords, options);
  else io::write_fits(folder.staged(name), cube, results.coords, options);
}

std::optional<Beam> middle_beam(const ImageResults& results) {
  if (results.dirty.beams.empty()) return std::nullopt;
  return results.dirty.beams[results.dirty.beams.size() / 2];
}

/// The figures, which are drawn while the caller goes on.
void stage_figures(plot::FigureWriter& figures, OutputFolder& folder, const ImageResults& results, const TrainResult& fit) {
  const auto center = results.data.observation.center;
  const auto add = [&](const char* name, plot::Page page) {
    plot::shift(page, center);
    figures.add(folder.staged(name), page);
  };
  plot::ImageFigureOptions options;  // a model has no beam
  if (results.frequencies.defined()) {
    const auto* values = results.frequencies.const_data_ptr<double>();
    options.frequencies.assign(values, values + results.frequencies.numel());
  }
  add("image.png", plot::image_page(results.sky, results.coords, options));

  plot::SummaryFigure figure(results.coords);
  figure.model = results.sky;
  figure.dirty = results.dirty.dirty;
  figure.residual = results.dirty.residual;
  figure.beam = middle_beam(results);
  figure.noise = results.dirty.noise;
  figure.baselines = results.baselines;
  figure.amplitude_q = results.dirty.data.q;
  figure.amplitude_data = results.dirty.data.amplitude;
  figure.amplitude_model = results.dirty.model.amplitude;
  figure.loss_names = fit.columns;
  auto curves = loss_curves(fit.history);
  figure.loss_epochs = std::move(curves.epochs);
  figure.loss_history = std::move(curves.values);
  add("summary.png", plot::summary_page(figure));
  if (results.errors) add("errors.png", error_page(results.errors->maps, results.coords, results.dirty.beams));
  if (!results.structures.empty()) add("structures.png", structure_page(results.structures, results.coords));
  add("report.png", report_page(results.coords, results.sky, results.dirty, center));
  if (!results.scan) return;
  figures.add(folder.staged("scan.png"), plot::scan_page(*results.scan));
  add("gallery.png", plot::gallery_page(*results.scan, results.coords));
}

void stage_errors(OutputFolder& folder, const ImageResults& results, io::FitsOptions header, bool split) {
  const auto& beams = results.dirty.beams;
  if (!beams.empty()) header.unit(io::FitsUnit::jy_per_beam).beams(beams);
  const auto of_image = header.history();
  for (const auto& file : error_files(*results.errors)) {
    auto history = of_image;
    history.insert(history.begin() + 1, file.words);
    stage_cube(folder, file.name, file.image, results, header.history(history), split);
  }
}

/// A file for each channel, with the samples along an axis of their own.
void stage_samples(OutputFolder& folder, const ImageResults& results, io::FitsOptions header) {
  auto history = header.history();
  history.insert(history.begin() + 1,
                 fmt::format("planes: {} fits to simulated data of the image (parametric bootstrap)", results.errors->samples));
  header.history(history).planes(io::FitsPlanes::samples);
  const auto nchan = results.kept_samples.size(1);
  for (std::int64_t channel = 0; channel < nchan; ++channel) {
    if (results.frequencies.defined()) header.frequencies(results.frequencies.narrow(0, channel, 1));
    const auto& maps = results.errors->maps;
    const auto own = static_cast<std::size_t>(channel);
    header.sample_errors({maps.error_factor[own], maps.growth[own], maps.growth_width[own]});
    io::write_fits(folder.staged(name_of_samples(channel, nchan)), results.kept_samples.select(1, channel), results.coords,
                   header);
  }
}

}  // namespace

void stage_images(OutputFolder& folder, const ImageResults& results, const TrainResult& fit, const ImageOptions& options,
                  const RunRecord& record) {
  plot::FigureWriter figures;
  stage_figures(figures, folder, results, fit);
  if (results.scan) write_file_atomically(folder.staged("scan.csv"), scan_csv(*results.scan));
  auto header = io::FitsOptions()
                    .frequencies(results.frequencies)
                    .observation(results.data.observation)
                    .history(history_lines(record, fit));
  stage_cube(folder, "image.fits", results.sky, results, header, options.split_channels);
  if (results.errors) stage_errors(folder, results, header, options.split_channels);
  if (results.kept_samples.defined()) stage_samples(folder, results, header);
  header.unit(io::FitsUnit::jy_per_beam).beams(results.dirty.beams);
  stage_cube(folder, "dirty.fits", results.dirty.dirty, results, header, options.split_channels);
  auto history = header.history();
  history.insert(history.begin() + 1, residual_words(imaging_of(options)));
  header.history(history);
  stage_cube(folder, "residual.fits", results.dirty.residual, results, header, options.split_channels);
  stop_if_requested();
  figures.finish();
}

void stage_record(OutputFolder& folder, const TrainResult& fit, const RunRecord& record, std::vector<std::string> more_files) {
  write_history_csv(folder.staged("history.csv"), fit);
  for (auto& name : folder.staged_names()) more_files.push_back(std::move(name));
  std::sort(more_files.begin(), more_files.end());
  more_files.erase(std::unique(more_files.begin(), more_files.end()), more_files.end());
  write_file_atomically(folder.staged("run.toml"), record.toml(fit.epochs, to_string(fit.stop_reason), more_files));
}

void stage_texts(OutputFolder& folder, const ImageSummary& summary, const RunRecord& record) {
  stage_record(folder, summary.fit, record, {"summary.json"});
  write_file_atomically(folder.staged("summary.json"), summary_json(summary));
}

}  // namespace mpol::cli
