#include <mpol_cpp/cli/run/fit_events.h>

#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/cli/output/diagnostics_files.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>

namespace mpol::cli {
namespace {

/// Jy, of each channel.
std::vector<double> fluxes(ImageModel& model) {
  const torch::NoGradGuard no_gradient;
  const auto sums = model.make_sky().detach().to(torch::kFloat64).sum({-2, -1}).to(torch::kCPU).flatten().contiguous();
  std::vector<double> flux(sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + sums.numel());
  for (auto& value : flux) value *= model.coords().cell_area();
  return flux;
}

}  // namespace

Callback FitEvents::callback() {
  return [this](const Progress& progress) {
    const auto done = progress.loss.epoch + 1;
    if (failed_ || (done % interval != 0 && done != progress.epochs)) return CallbackAction::proceed;
    try {
      write(progress, done);
    } catch (const FileError& error) {
      log_warning(fmt::format("no more events for TensorBoard after {} epochs: {}", done, error.what()));
      failed_ = true;
    }
    return CallbackAction::proceed;
  };
}

void FitEvents::write(const Progress& progress, std::int64_t done) {
  if (!file_) {
    if (done <= interval) remove_event_files(out_);  // of a run that this one replaces
    file_.emplace(diagnostics_folder(out_), fmt::format("{:010}.mpol", done));
    file_->begin(done);
  }
  std::vector<std::pair<std::string, double>> values;
  for (std::size_t i = 0; i < progress.columns.size(); ++i)
    values.emplace_back("loss/" + progress.columns[i], progress.loss.values[i]);
  values.emplace_back("learning_rate", progress.loss.learning_rate);
  const auto flux = fluxes(progress.model);
  for (std::size_t channel = 0; channel < flux.size(); ++channel)
    values.emplace_back(flux.size() == 1 ? std::string("flux_jy") : fmt::format("flux_jy/{}", channel), flux[channel]);
  file_->add_scalars(done, values);
}

}  // namespace mpol::cli
