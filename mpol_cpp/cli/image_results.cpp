#include <mpol_cpp/cli/image_results.h>

#include <ATen/ops/complex.h>
#include <ATen/ops/fft_fft2.h>

#include <mpol_cpp/cli/stop_request.h>
#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/image_figure.h>
#include <mpol_cpp/plot/summary_figure.h>
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

std::optional<plot::BeamEllipse> ellipse(const ImageResults& results) {
  if (results.dirty.beams.empty()) return std::nullopt;
  const auto& beam = results.dirty.beams[results.dirty.beams.size() / 2];
  return plot::BeamEllipse{.major = beam.major, .minor = beam.minor, .position_angle = beam.position_angle};
}

/// The cells' baseline lengths, data and model, for the panel of amplitudes.
void add_amplitudes(plot::SummaryFigure& figure, const ImageResults& results) {
  const auto& dataset = results.dataset;
  const auto cells = dataset->cells().remainder(results.coords.npix() * results.coords.npix());
  const auto q = results.coords.packed_q().flatten().index_select(0, cells);
  const auto model = at::fft_fft2(sky_to_packed(results.sky)) * results.coords.cell_area();
  const auto data = plot::binned_amplitudes(q, dataset->visibilities(), dataset->weights(), plot::NoiseBias::subtract);
  const auto fitted = plot::binned_amplitudes(q, dataset->at_cells(model), dataset->weights(), plot::NoiseBias::keep);
  figure.amplitude_q = data.q;
  figure.amplitude_data = data.amplitude;
  figure.amplitude_model = fitted.amplitude;
}

void stage_figures(OutputFolder& folder, const ImageResults& results, const TrainResult& fit) {
  plot::ImageFigureOptions options;
  options.beam = ellipse(results);
  if (results.frequencies.defined()) {
    const auto* values = results.frequencies.const_data_ptr<double>();
    options.frequencies.assign(values, values + results.frequencies.numel());
  }
  plot::write_image_figure(folder.staged("image.png"), results.sky, results.coords, options);
  stop_if_requested();

  plot::SummaryFigure figure(results.coords);
  figure.model = results.sky;
  figure.dirty = results.dirty.dirty;
  figure.residual = results.dirty.residual;
  figure.beam = ellipse(results);
  figure.baselines = results.visibilities.baselines();
  add_amplitudes(figure, results);
  figure.loss_names = fit.columns;
  figure.loss_history.resize(fit.columns.size());
  for (const auto& row : fit.history) {
    for (std::size_t i = 0; i < row.values.size(); ++i) figure.loss_history[i].push_back(row.values[i]);
  }
  plot::write_summary_figure(folder.staged("summary.png"), figure);
}

}  // namespace

void stage_images(OutputFolder& folder, const ImageResults& results, const TrainResult& fit, const ImageOptions& options,
                  const RunRecord& record) {
  auto header = io::FitsOptions()
                    .frequencies(results.frequencies)
                    .observation(results.visibilities.observation())
                    .history(history_lines(record, fit));
  stage_cube(folder, "image.fits", results.sky, results, header, options.split_channels);
  header.unit(io::FitsUnit::jy_per_beam).beams(results.dirty.beams);
  stage_cube(folder, "dirty.fits", results.dirty.dirty, results, header, options.split_channels);
  stage_cube(folder, "residual.fits", results.dirty.residual, results, header, options.split_channels);
  stage_figures(folder, results, fit);
}

void stage_texts(OutputFolder& folder, const ImageSummary& summary, const RunRecord& record) {
  write_file_atomically(folder.staged("history.csv"), history_csv(summary.fit));
  write_file_atomically(folder.staged("run.toml"), record.toml(summary.fit.epochs, to_string(summary.fit.stop_reason)));
  write_file_atomically(folder.staged("summary.json"), summary_json(summary));
}

}  // namespace mpol::cli
