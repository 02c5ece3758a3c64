#include <mpol_cpp/cli/image_run.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include <mpol_cpp/cli/config_file.h>
#include <mpol_cpp/cli/dirty_products.h>
#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/cli/fit_diagnostics.h>
#include <mpol_cpp/cli/fit_setup.h>
#include <mpol_cpp/cli/image_results.h>
#include <mpol_cpp/cli/image_summary.h>
#include <mpol_cpp/cli/memory.h>
#include <mpol_cpp/cli/messages.h>
#include <mpol_cpp/cli/output_folder.h>
#include <mpol_cpp/cli/run_environment.h>
#include <mpol_cpp/cli/run_record.h>
#include <mpol_cpp/cli/stop_request.h>
#include <mpol_cpp/cli/threads.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/device/load.h>
#include <mpol_cpp/device/numerics.h>
#include <mpol_cpp/device/select.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/losses/prediction.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/train/guess_weights.h>
#include <mpol_cpp/train/progress_report.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>

namespace mpol::cli {
namespace {

/// Puts the time since its beginning into one of the run's timings when its scope ends.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { stop(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void stop() { seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The device for --device. That "auto" takes the CPU where there is no GPU is no reason for a warning: the summary names
/// the device.
torch::Device choose_device(const ImageOptions& options) {
  const auto& text = options.data.device;
  const auto request = DeviceRequest::parse(text);
  const bool automatic = request.kind() == DeviceRequest::Kind::automatic;
  if (!automatic || no_gpu_reason().empty()) return select_device(request, Fallback::error);
  log_info("no GPU: " + no_gpu_reason());
  return torch::kCPU;
}

/// One run of `mpol image`, from the settings to the files.
class ImageRun {
 public:
  ImageRun(ImageOptions& options, const OptionSet& settings)
      : options_(options),
        coords_(requested_grid(options.data)),
        device_(choose_device(options)),
        threads_(use_threads(options.data.threads)) {
    set_deterministic(options.deterministic);
    check_memory_for(1, 0);  // before anything is read or allocated; again with the channels of the data
    options_.data.device = device_.str();
    options_.data.threads = threads_;
    record_.emplace(settings.recorded(), options_);
  }

  int run() {
    if (options_.resume && is_finished(options_.output.out, *record_, options_.epochs)) return already_finished();
    warn_of_changes();
    OutputFolder folder(options_.output.out, existing());
    summary_.seconds.start = seconds_since_start();
    read();
    grid();
    stop_if_requested();
    fit(folder);
    if (summary_.fit.stop_reason == StopReason::interrupted) return interrupted(folder);
    const bool diverged = summary_.fit.stop_reason == StopReason::diverged;
    if (diverged && !options_.keep_diverged) return fail_diverged(folder);
    write(folder);
    return diverged ? report_divergence() : exit_done;
  }

 private:
  Existing existing() const {
    if (options_.resume) return Existing::resume;
    return options_.output.overwrite ? Existing::replace : Existing::refuse;
  }

  void check_memory_for(std::int64_t nchan, std::int64_t visibilities) const {
    const auto needed = fit_memory(options_, coords_.npix(), nchan, visibilities, device_);
    if (options_.memory_limit) check_memory_limit(needed, *options_.memory_limit * 0x1p30, coords_.npix(), nchan);
    check_memory(needed, available_memory(), coords_.npix(), nchan);
    if (!device_.is_cuda()) return;
    const auto free = static_cast<double>(memory_info(device_).free_bytes);
    check_memory(needed, free, coords_.npix(), nchan);
  }

  int already_finished() const {
    if (options_.output.json) {
      const std::ifstream summary(options_.output.out / "summary.json");
      std::cout << summary.rdbuf();
    } else if (!options_.output.quiet) {
      fmt::print("{} is finished: nothing to do (more --epochs continue it)\n", options_.output.out.string());
    }
    return exit_done;
  }

  void warn_of_changes() const {
    const auto& config = options_.output.config;
    if (const auto warning = config.empty() ? std::nullopt : changed_data(config, record_->data_digest())) log_warning(*warning);
    if (!options_.resume) return;
    if (const auto warning = changed_device(options_.output.out, options_.data.device)) log_warning(*warning);
  }

  void read() {
    const Stopwatch watch(summary_.seconds.reading);
    visibilities_.emplace(read_visibilities(options_.data));
    check_grid_holds(*visibilities_, options_.data, coords_);
    check_no_hermitian_pairs(*visibilities_);
    stop_if_requested();
  }

  void grid() {
    const Stopwatch watch(summary_.seconds.gridding);
    const auto nchan = visibilities_->nchan();
    channels_ = options_.mode == "continuum" ? ChannelMap::continuum(nchan) : ChannelMap::cube(nchan);
    check_memory_for(channels_.nchan(), nchan * visibilities_->nvis());
    // A warning is this program's own line; only an error is left to the library. Only cell averages need right weights.
    const bool refuses = options_.scatter_check == "error" && options_.likelihood == "gridded";
    const auto check = refuses ? ScatterCheck::error : ScatterCheck::off;
    const DataAverager averager(coords_, *visibilities_, DataAveragerOptions().channel_map(channels_).scatter_check(check));
    summary_.scatter = averager.scatter();
    dataset_ = averager.to_dataset();
    if (options_.scatter_check != "off" && !refuses) warning_ = scatter_warning(summary_.scatter);
    if (!warning_.empty()) log_warning(warning_);
    stop_if_requested();
    likelihood_ = make_likelihood(options_, *visibilities_, channels_, dataset_, device_);
  }

  void fit(const OutputFolder& folder) {
    const Stopwatch watch(summary_.seconds.training);
    GriddedNet model(model_options(options_, coords_, dataset_));
    model->to(device_, options_.data.torch_dtype());
    Objective objective(likelihood_, terms_of_fit(), normalize_of(options_.normalize));
    auto train = train_options(options_, *record_, folder.path());
    train.interrupted([] { return stop_requested() != 0; });
    ProgressReport report(report_options());
    std::optional<FitDiagnostics> diagnostics;
    std::vector<Callback> callbacks{report.callback()};
    if (options_.diagnostics_interval) {
      diagnostics.emplace(folder.path(), *options_.diagnostics_interval, objective, *model.ptr(), train.checkpoint());
      callbacks.push_back(diagnostics->callback());
    }
    train.callbacks(std::move(callbacks));
    summary_.fit = Trainer(model, objective, train).fit();
    report.finish();
    const auto reason = summary_.fit.stop_reason;
    const bool ended = reason == StopReason::epochs || reason == StopReason::converged;
    if (diagnostics && ended) diagnostics->finish(*model);  // not of an interrupted fit, which goes on as if it never was
    torch::NoGradGuard no_gradient;
    sky_ = model->make_sky().detach().to(torch::kCPU, torch::kFloat64);
    describe_fit(objective);
  }

  /// The regularisers that were given a weight, and those whose weight is to be guessed.
  std::vector<Term> terms_of_fit() const {
    auto terms = regularizer_terms(options_.regularizers);
    for (const auto& term : guess_weights(regularizer_terms(guessed_regularizers(options_)), dataset_)) {
      if (!options_.output.quiet && !options_.output.json)
        fmt::print("lambda of {}: {:.3g} (guessed)\n", term.name(), term.weights().front());
      terms.push_back(term);
    }
    return terms;
  }

  ProgressReportOptions report_options() const {
    const auto& output = options_.output;
    const bool silent = output.quiet || output.json;  // stderr is for warnings and the one line of an error
    return ProgressReportOptions().style(silent ? ReportStyle::silent : ReportStyle::automatic).stream(stdout);
  }

  void describe_fit(const Objective& objective) {
    auto& likelihood = objective.likelihood();
    summary_.likelihood = options_.likelihood;
    summary_.gaussian = options_.noise == "gaussian";
    summary_.normaliser = objective.normaliser();
    summary_.chi_squared = summary_.fit.loss.nll() * 2 * summary_.normaliser;
    summary_.samples = likelihood.samples();
    summary_.visibilities = likelihood.visibilities_count();
    summary_.cells = dataset_->ncells();
    const auto flux = (sky_.sum({-2, -1}) * coords_.cell_area()).contiguous();
    summary_.flux.assign(flux.const_data_ptr<double>(), flux.const_data_ptr<double>() + flux.numel());
    summary_.device = options_.data.device;
    summary_.dtype = options_.data.dtype;
    summary_.threads = threads_;
    summary_.seed = options_.seed;
  }

  double chi_squared_of_visibilities() const {
    if (options_.likelihood != "gridded" && options_.noise == "gaussian") return summary_.chi_squared;
    return losses::loose_chi_squared(coords_, sky_, *visibilities_, channels_);
  }

  void write(OutputFolder& folder) {
    const auto begin = seconds_since_start();
    summary_.chi_squared_of_visibilities = chi_squared_of_visibilities();
    const ImageResults results{.coords = coords_,
                               .sky = sky_,
                               .dirty = dirty_products(dataset_, sky_),
                               .frequencies = image_frequencies(*visibilities_, dataset_->nchan()),
                               .visibilities = *visibilities_,
                               .dataset = dataset_};
    stage_images(folder, results, summary_.fit, options_, *record_);
    summary_.seconds.writing = seconds_since_start() - begin;
    summary_.seconds.total = seconds_since_start();
    stage_texts(folder, summary_, *record_);
    folder.commit();
    if (!options_.resume && !options_.diagnostics_interval) remove_diagnostics(folder.path());  // of the run that was replaced
    if (options_.output.json) fmt::print("{}", summary_json(summary_));
    else if (!options_.output.quiet) fmt::print("{}", closing_words(summary_, folder.path().string(), warning_));
  }

  int interrupted(const OutputFolder& folder) const {
    write_file_atomically(folder.file("history.csv"), history_csv(summary_.fit));
    write_file_atomically(folder.file("run.toml"), record_->toml(summary_.fit.epochs, to_string(summary_.fit.stop_reason)));
    if (!options_.output.quiet) {
      fmt::print(stderr, "mpol image: interrupted after {} epochs; --resume continues\n", summary_.fit.epochs);
    }
    return 128 + stop_requested();
  }

  int fail_diverged(const OutputFolder& folder) const {
    // With --overwrite the results of the earlier run stay as they are, its history too.
    if (existing() != Existing::replace) write_file_atomically(folder.file("history.csv"), history_csv(summary_.fit));
    return report_divergence();
  }

  int report_divergence() const { throw DivergedError(summary_.fit.diagnosis); }

  ImageOptions& options_;
  GridCoords coords_;
  torch::Device device_;
  std::int64_t threads_;
  std::optional<RunRecord> record_;

  std::optional<Visibilities> visibilities_;
  ChannelMap channels_;
  GriddedDataset dataset_{nullptr};  // float64, on the CPU
  std::shared_ptr<Likelihood> likelihood_;
  Tensor sky_;  // (nchan, npix, npix) float64, on the CPU, Jy/arcsec^2
  ImageSummary summary_;
  std::string warning_;
};

}  // namespace

int run_image(ImageOptions& options, const OptionSet& settings) {
  settle(options);
  listen_to_library("image", options.output);
  return ImageRun(options, settings).run();
}

}  // namespace mpol::cli
