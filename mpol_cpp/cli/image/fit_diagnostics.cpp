#include <mpol_cpp/cli/image/fit_diagnostics.h>

#include <algorithm>
#include <utility>

#include <mpol_cpp/cli/output/csv_table.h>
#include <mpol_cpp/cli/output/diagnostics_files.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/output/loss_curves.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/plot/figures/training_figure.h>
#include <mpol_cpp/plot/image_panel.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/train/checkpoint.h>

namespace mpol::cli {
namespace {

/// An image (nchan, npix, npix), or nothing when the file has none of that name. @throws FileError for another shape
Tensor image_in(const SafetensorsFile& file, const std::filesystem::path& path, const std::string& name) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) return {};
  const auto& image = found->second;
  const bool fits = image.dim() == 3 && image.is_floating_point() && image.size(0) > 0 && image.size(1) == image.size(2) &&
                    image.sizes() == file.tensors.at("image").sizes();
  if (fits) return image;
  throw FileError(
      error_text("diagnostics", path.string(), fmt::format("have an {} of shape {}", name, image.sizes()), "remove it"));
}

void read_tensors(const std::filesystem::path& path, SavedDiagnostics& saved) {
  if (!std::filesystem::exists(path)) return;
  auto file = read_safetensors(path);
  if (!file.tensors.contains("image")) throw FileError(error_text("diagnostics", path.string(), "have no image", "remove it"));
  const auto epoch = number_of<std::int64_t>(file.metadata["epoch"]);
  const auto cell_size = number_of<double>(file.metadata["cell_size"]);
  if (!epoch || !cell_size) {
    throw FileError(error_text("diagnostics", path.string(), "does not say its epoch and cell size", "remove it"));
  }
  saved.image_epoch = *epoch;
  saved.cell_size = *cell_size;
  saved.image = image_in(file, path, "image");
  saved.gradient = image_in(file, path, "gradient");
  saved.change = image_in(file, path, "change");
}

/// Diagnostics are no reason for a fit not to go on.
std::optional<SavedDiagnostics> earlier_diagnostics(const std::filesystem::path& out) {
  try {
    return read_diagnostics(out);
  } catch (const std::exception& error) {
    log_warning(fmt::format("the diagnostics of the epochs before are lost: {}", error.what()));
    return std::nullopt;
  }
}

}  // namespace

std::optional<SavedDiagnostics> read_diagnostics(const std::filesystem::path& out) {
  const auto folder = diagnostics_folder(out);
  if (!std::filesystem::exists(folder / diagnostics_table)) return std::nullopt;
  const auto table = read_csv(folder / diagnostics_table);
  SavedDiagnostics saved;
  saved.epochs = table["epoch"];
  saved.gradient_norm = table["gradient_norm"];
  saved.largest_change = table["largest_change"];
  for (std::size_t channel = 0; table.has(fmt::format("flux_{}", channel)); ++channel) {
    saved.flux.push_back(table[fmt::format("flux_{}", channel)]);
  }
  read_tensors(folder / diagnostics_tensors, saved);
  return saved;
}

FitDiagnostics::FitDiagnostics(std::filesystem::path out, std::int64_t interval, const Objective& objective, ImageModel& model,
                               std::filesystem::path checkpoint, const SkyOffset& center)
    : out_(std::move(out)),
      checkpoint_(std::move(checkpoint)),
      interval_(interval),
      loss_names_(objective.columns()),
      probe_(objective, model),
      coords_(model.coords()),
      center_(center) {}

Callback FitDiagnostics::callback() {
  return [this](const Progress& progress) {
    if (!begun_) begin(progress.loss.epoch);
    done_ = progress.loss.epoch + 1;
    history_.push_back(progress.loss);
    if (done_ % interval_ == 0) show(progress.model);
    return CallbackAction::proceed;
  };
}

void FitDiagnostics::finish(ImageModel& model) {
  if (begun_ && (rows_.empty() || rows_.back().epoch != done_)) show(model);
}

/// Keeps the rows that an interrupted fit left up to the epoch from which this one resumes, and drops those that will be
/// repeated.
void FitDiagnostics::begin(std::int64_t epochs_done_before) {
  begun_ = true;
  if (epochs_done_before == 0) {
    remove_diagnostics(out_);
  } else {
    probe_.set_last({});
    if (const auto checkpoint = read_checkpoint(checkpoint_)) history_ = checkpoint->history;
    history_.resize(std::min(history_.size(), static_cast<std::size_t>(epochs_done_before)));
    if (const auto saved = earlier_diagnostics(out_)) {
      for (std::size_t i = 0; i < saved->epochs.size(); ++i) {
        const auto epoch = static_cast<std::int64_t>(saved->epochs[i]);
        if (epoch > epochs_done_before) break;
        rows_.push_back({epoch, saved->gradient_norm[i], saved->largest_change[i], {}});
        for (const auto& flux : saved->flux) rows_.back().flux.push_back(flux[i]);
      }
      if (!rows_.empty() && saved->image_epoch == rows_.back().epoch) probe_.set_last(saved->image);
    }
  }
}

void FitDiagnostics::show(ImageModel& model) {
  const auto view = probe_.look(model);
  rows_.push_back({done_, view.gradient_norm, view.largest_change, view.flux});
  write(view);
}

void FitDiagnostics::write(const FitView& view) {
  const auto fail = [this](const std::string& reason) {
    if (!failed_) log_warning(fmt::format("no diagnostics after {} epochs: {}; the fit goes on and tries again", done_, reason));
    failed_ = true;
  };
  try {
    std::filesystem::create_directories(diagnostics_folder(out_));
    write_figure(view);
    write_last(view);
    write_table();
    failed_ = false;
  } catch (const FileError& error) {
    fail(error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    fail(cannot_write(error.path1(), error.code().value()));
  }
}

void FitDiagnostics::write_table() const {
  std::string text = "epoch,gradient_norm,largest_change";
  for (std::size_t channel = 0; channel < rows_.front().flux.size(); ++channel) text += fmt::format(",flux_{}", channel);
  text += '\n';
  for (const auto& row : rows_) {
    text += fmt::format("{},{:.17g},{:.17g}", row.epoch, row.gradient_norm, row.largest_change);
    for (const double flux : row.flux) text += fmt::format(",{:.17g}", flux);
    text += '\n';
  }
  write_file_atomically(diagnostics_folder(out_) / diagnostics_table, text);
}

void FitDiagnostics::write_last(const FitView& view) const {
  NamedTensors tensors{{"image", view.image}, {"gradient", view.gradient}};
  if (view.change.defined()) tensors["change"] = view.change;
  write_safetensors(diagnostics_folder(out_) / diagnostics_tensors, tensors,
                    {{"epoch", std::to_string(done_)}, {"cell_size", fmt::format("{:.17g}", coords_.cell_size())}});
}

void FitDiagnostics::write_figure(const FitView& view) {
  plot::TrainingFigure figure(coords_);
  figure.title = fmt::format("after {} epochs", done_);
  figure.image = view.image;
  figure.gradient = view.gradient;
  figure.change = view.change;
  figure.loss_names = loss_names_;
  auto curves = loss_curves(history_);
  figure.loss_epochs = std::move(curves.epochs);
  figure.loss_history = std::move(curves.values);
  figure.learning_rate = std::move(curves.learning_rate);
  figure.flux.resize(rows_.back().flux.size());
  for (const auto& row : rows_) {
    figure.flux_epochs.push_back(static_cast<double>(row.epoch));
    for (std::size_t channel = 0; channel < figure.flux.size(); ++channel) figure.flux[channel].push_back(row.flux[channel]);
  }
  auto page = plot::training_page(figure);
  plot::shift(page, center_);
  figures_.add(diagnostics_folder(out_) / diagnostics_figure(done_), page);
  figures_.finish();
}

}  // namespace mpol::cli
