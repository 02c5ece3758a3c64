#include <mpol_cpp/cli/fit_diagnostics.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/cli/csv_table.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/plot/training_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/train/checkpoint.h>

namespace mpol::cli {
namespace {

constexpr const char* table_name = "diagnostics.csv";
constexpr const char* tensors_name = "last.safetensors";

bool is_figure(const std::string& name) { return name.starts_with("epoch_") && name.ends_with(".png"); }

std::string figure_name(std::int64_t epoch) { return fmt::format("epoch_{:06}.png", epoch); }

std::vector<double> flux_of(const Tensor& image, const GridCoords& coords) {
  const auto flux = (image.to(torch::kFloat64).sum({-2, -1}) * coords.cell_area()).contiguous();
  return {flux.const_data_ptr<double>(), flux.const_data_ptr<double>() + flux.numel()};
}

double norm_of(const Tensor& values) { return values.to(torch::kFloat64).square().sum().sqrt().item<double>(); }

Tensor on_host(const Tensor& image) { return image.detach().to(torch::kCPU).clone(); }

void read_tensors(const std::filesystem::path& path, SavedDiagnostics& saved) {
  if (!std::filesystem::exists(path)) return;
  auto file = read_safetensors(path);
  saved.image_epoch = std::stoll(file.metadata.at("epoch"));
  saved.cell_size = std::stod(file.metadata.at("cell_size"));
  saved.image = file.tensors["image"];
  saved.gradient = file.tensors["gradient"];
  saved.change = file.tensors["change"];
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

std::filesystem::path diagnostics_folder(const std::filesystem::path& out) { return out / "diagnostics"; }

std::optional<SavedDiagnostics> read_diagnostics(const std::filesystem::path& out) {
  const auto folder = diagnostics_folder(out);
  if (!std::filesystem::exists(folder / table_name)) return std::nullopt;
  const auto table = read_csv(folder / table_name);
  SavedDiagnostics saved;
  saved.epochs = table["epoch"];
  saved.gradient_norm = table["gradient_norm"];
  saved.largest_change = table["largest_change"];
  for (std::size_t channel = 0; table.has(fmt::format("flux_{}", channel)); ++channel) {
    saved.flux.push_back(table[fmt::format("flux_{}", channel)]);
  }
  read_tensors(folder / tensors_name, saved);
  return saved;
}

void remove_diagnostics(const std::filesystem::path& out) {
  const auto folder = diagnostics_folder(out);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    if (is_figure(name) || name == table_name || name == tensors_name) std::filesystem::remove(entry.path(), ignored);
  }
  std::filesystem::remove(folder, ignored);  // what is not mpol's own stays
}

FitDiagnostics::FitDiagnostics(std::filesystem::path out, std::int64_t interval, const Objective& objective, ImageModel& model,
                               std::filesystem::path checkpoint)
    : out_(std::move(out)),
      checkpoint_(std::move(checkpoint)),
      interval_(interval),
      objective_(objective),
      coords_(model.coords()) {
  const torch::NoGradGuard no_gradient;
  previous_ = on_host(model.make_sky());
}

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

/// Takes up what an interrupted fit left up to the epoch from which this one goes on; rows of epochs that are done again go.
void FitDiagnostics::begin(std::int64_t epochs_done_before) {
  begun_ = true;
  if (epochs_done_before == 0) {
    remove_diagnostics(out_);
  } else {
    previous_.reset();
    if (const auto checkpoint = read_checkpoint(checkpoint_)) history_ = checkpoint->history;
    history_.resize(std::min(history_.size(), static_cast<std::size_t>(epochs_done_before)));
    if (const auto saved = earlier_diagnostics(out_)) {
      for (std::size_t i = 0; i < saved->epochs.size(); ++i) {
        const auto epoch = static_cast<std::int64_t>(saved->epochs[i]);
        if (epoch > epochs_done_before) break;
        rows_.push_back({epoch, saved->gradient_norm[i], saved->largest_change[i], {}});
        for (const auto& flux : saved->flux) rows_.back().flux.push_back(flux[i]);
      }
      if (!rows_.empty() && saved->image_epoch == rows_.back().epoch) previous_ = saved->image;
    }
  }
  std::filesystem::create_directories(diagnostics_folder(out_));
}

void FitDiagnostics::show(ImageModel& model) {
  Tensor sky;
  {
    const torch::NoGradGuard no_gradient;
    sky = model.make_sky().detach().clone();
  }
  const auto gradient = on_host(gradient_at(model, sky)), image = on_host(sky);
  const auto change = previous_.defined() ? image - previous_ : Tensor();
  const double largest = change.defined() ? change.abs().max().item<double>() : std::numeric_limits<double>::quiet_NaN();
  rows_.push_back({done_, norm_of(gradient), largest, flux_of(image, coords_)});
  write_figure(image, gradient, change);
  write_last(image, gradient, change);
  write_table();
  previous_ = image;
}

/// Of the objective with respect to the image. Evaluating may move a likelihood's working state, on which its next values
/// depend to the last bit.
Tensor FitDiagnostics::gradient_at(ImageModel& model, const Tensor& sky) const {
  auto& likelihood = objective_.likelihood();
  const auto state = likelihood.working_state();
  const torch::AutoGradMode with_gradient(true);
  const auto image = sky.clone().set_requires_grad(true);
  const auto base = model.base().defined() ? model.base().detach() : Tensor();
  const auto total = objective_.evaluate(ModelOutput(coords_, base, image)).total.sum();
  const auto gradient = torch::autograd::grad({total}, {image}, {}, std::nullopt, false, /*allow_unused=*/true)[0];
  if (!state.empty()) likelihood.load_working_state(state);
  return gradient.defined() ? gradient : at::zeros_like(sky);
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
  write_file_atomically(diagnostics_folder(out_) / table_name, text);
}

void FitDiagnostics::write_last(const Tensor& image, const Tensor& gradient, const Tensor& change) const {
  NamedTensors tensors{{"image", image}, {"gradient", gradient}};
  if (change.defined()) tensors["change"] = change;
  write_safetensors(diagnostics_folder(out_) / tensors_name, tensors,
                    {{"epoch", std::to_string(done_)}, {"cell_size", fmt::format("{:.17g}", coords_.cell_size())}});
}

void FitDiagnostics::write_figure(const Tensor& image, const Tensor& gradient, const Tensor& change) const {
  plot::TrainingFigure figure(coords_);
  figure.title = fmt::format("after {} epochs", done_);
  figure.image = image;
  figure.gradient = gradient;
  figure.change = change;
  figure.loss_names = objective_.columns();
  figure.loss_history.resize(figure.loss_names.size());
  for (const auto& loss : history_) {
    for (std::size_t i = 0; i < figure.loss_names.size(); ++i) figure.loss_history[i].push_back(loss.values.at(i));
    figure.learning_rate.push_back(loss.learning_rate);
  }
  figure.flux.resize(rows_.back().flux.size());
  for (const auto& row : rows_) {
    figure.flux_epochs.push_back(static_cast<double>(row.epoch));
    for (std::size_t channel = 0; channel < figure.flux.size(); ++channel) figure.flux[channel].push_back(row.flux[channel]);
  }
  plot::RenderOptions render;  // one file a figure: gnuplot's data would take many times its room
  render.renderer = plot::RendererChoice::built_in;
  plot::write_training_figure(diagnostics_folder(out_) / figure_name(done_), figure, render);
}

}  // namespace mpol::cli
