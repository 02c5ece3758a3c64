#include <mpol_cpp/train/fit.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <ATen/Context.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>

#include <mpol_cpp/train/steps/make_step.h>
#include <mpol_cpp/models/model_image.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/serialize/module_state.h>
#include <mpol_cpp/train/history_files.h>
#include <mpol_cpp/train/run_settings.h>
#include <mpol_cpp/train/options/stop_criterion.h>

namespace mpol::detail {
namespace {

constexpr std::int64_t epochs_between_kept_states = 25;
constexpr std::size_t epochs_between_fetches = 50;  // on a GPU
constexpr double seconds_between_checkpoints = 30.0;
constexpr std::string_view stop_prefix = "stop.";  // of what stops_ keeps in a state
constexpr const char* flux_name = "flux.marked";

/// The one device of a model and a likelihood. @throws DeviceError that names two tensors on different ones
torch::Device common_device(ImageModel& model, Likelihood& likelihood) {
  std::optional<torch::Device> device;
  std::string first;
  const auto check = [&](const std::string& owner, const torch::nn::Module& module) {
    for (const auto& [name, tensor] : module_state(module)) {
      if (!device) device = tensor.device(), first = owner + name;
      if (tensor.device() == *device) continue;
      throw DeviceError(fmt::format("{} is on {} but {}{} is on {}: move both with .to(device), or name a device in the options",
                                    first, device->str(), owner, name, tensor.device().str()));
    }
  };
  check("model.", model.as_module());
  check("likelihood.", likelihood.as_module());
  return device.value_or(torch::Device(torch::kCPU));
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

/// Of each report its columns summed over problems, then the sum of the parameters, (reports, columns + 1).
Tensor table_of(const std::vector<Tensor>& losses, const std::vector<Tensor>& parameters_sums) {
  return at::cat({at::stack(losses).sum(2), at::stack(parameters_sums).unsqueeze(1)}, 1);
}

/// Of each problem.
std::vector<double> totals_of(const StepReport& report) {
  const auto totals = report.losses.select(0, 0).to(torch::kCPU).contiguous();
  return {totals.const_data_ptr<double>(), totals.const_data_ptr<double>() + totals.numel()};
}

}  // namespace

Fit::Fit(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options)
    : model_(std::move(model)), objective_(objective), options_(options) {
  place();
  step_ = make_step(model_, objective_, options_);
  if (options_.stops_each()) {
    const auto problems = static_cast<std::size_t>(c10::multiply_integers(problem_shape(*model_)));
    stops_.emplace(problems, options_.stop_relative(), options_.stop_window());
    stopped_.resize(problems);
  }
  at::manual_seed(options_.seed());
  result_.columns = objective_.columns();
  result_.step = step_->kind();
  result_.step_reason = step_->reason();
}

void Fit::place() {
  for (auto* module : {&model_->as_module(), &objective_.likelihood().as_module()}) {
    if (options_.device()) module->to(*options_.device());
  }
  if (options_.dtype()) model_->as_module().to(*options_.dtype());
  const bool watched = !options_.callbacks().empty() || options_.stop_relative() > 0;
  const auto device = common_device(*model_, objective_.likelihood());
  timer_.emplace(device);
  fetch_interval_ = device.is_cpu() || watched ? 1 : epochs_between_fetches;
}

TrainResult Fit::run() {
  resume();
  good_ = present_state();
  auto reason = train();
  if (reason != StopReason::diverged && !evaluate_final()) reason = StopReason::diverged;
  if (reason == StopReason::diverged) rewind();
  else reason = verdict(reason);
  if (!options_.checkpoint().empty() && checkpoint_epochs_ != done_) write_checkpoint();
  result_.stop_reason = reason;
  result_.epochs = done_;
  result_.checkpoint_epochs = std::max<std::int64_t>(checkpoint_epochs_, 0);
  if (stops_) {
    for (const auto epochs : stops_->epochs()) result_.problem_epochs.push_back(epochs < 0 ? done_ : epochs);
  }
  result_.seconds = seconds();
  return std::move(result_);
}

void Fit::resume() {
  if (!options_.resume()) return;
  const auto& path = options_.checkpoint();
  const auto checkpoint = read_checkpoint(path);
  if (!checkpoint) return;
  check_same_run(path, checkpoint->settings, run_settings(*model_, objective_, options_));
  if (checkpoint->epochs > options_.epochs()) {
    throw FileError(fmt::format("{} has {} epochs done, more than the {} asked for: ask for at least {}", path.string(),
                                checkpoint->epochs, options_.epochs(), checkpoint->epochs));
  }
  try {
    go_to({checkpoint->epochs, checkpoint->state});
  } catch (const FileError& error) {
    throw FileError(fmt::format("{} does not fit this run: {}", path.string(), error.what()));
  }
  if (checkpoint->read_from != path) existing_checkpoint_ = Existing::replace;
  done_ = result_.resumed_from = checkpoint_epochs_ = checkpoint->epochs;
  result_.history = checkpoint->history;
  history_files_ = checkpoint->history_files;
  mark_flux_if_due();
}

double Fit::learning_rate(std::int64_t epoch) const { return options_.learning_rate() * options_.schedule().factor(epoch); }

StepReport Fit::take_step(std::int64_t epoch) { return step_->take(learning_rate(epoch)); }

StopReason Fit::train() {
  while (done_ < options_.epochs()) {
    if (has_converged()) return StopReason::converged;
    pending_.push_back({learning_rate(done_), take_step(done_)});
    ++done_;
    mark_flux_if_due();
    if (pending_.size() >= fetch_interval_ && !record()) return StopReason::diverged;
    if (const auto reason = after_epoch()) return *reason;
  }
  return record() ? StopReason::epochs : StopReason::diverged;
}

bool Fit::has_converged() {
  if (!stops_) return mpol::has_converged(result_.history, options_.stop_relative(), options_.stop_window());
  stops_->decide(done_);
  if (const auto stopped = stops_->stopped(); stopped != stopped_) step_->set_stopped(stopped_ = stopped);
  return stops_->all_stopped();
}

TrainingState Fit::present_state() const {
  auto state = capture_state(done_, *model_, objective_, *step_);
  if (flux_mark_) {
    state.tensors[flux_name] = at::tensor({static_cast<double>(flux_mark_->epochs), flux_mark_->flux}, torch::kFloat64);
  }
  if (!stops_) return state;
  for (const auto& [name, tensor] : stops_->state()) state.tensors[std::string(stop_prefix) + name] = tensor;
  return state;
}

void Fit::go_to(const TrainingState& state) {
  restore_state(state, *model_, objective_, *step_);
  if (const auto found = state.tensors.find(flux_name); found != state.tensors.end()) {
    const auto mark = found->second.to(torch::kCPU, torch::kFloat64);
    if (mark.numel() != 2) throw FileError(fmt::format("the saved state has a {} of shape {}", flux_name, mark.sizes().vec()));
    flux_mark_ = {static_cast<std::int64_t>(mark[0].item<double>()), mark[1].item<double>()};
  }
  if (!stops_) return;
  NamedTensors own;
  for (const auto& [name, tensor] : state.tensors) {
    if (name.starts_with(stop_prefix)) own[name.substr(stop_prefix.size())] = tensor;
  }
  stops_->load_state(own);
  step_->set_stopped(stopped_ = stops_->stopped());
}

std::optional<StopReason> Fit::after_epoch() {
  bool stop = false;
  const auto loss = options_.callbacks().empty() ? EpochLoss{} : result_.history.back();
  for (const auto& callback : options_.callbacks()) {
    const Progress progress{loss, result_.columns, options_.epochs(), seconds(), *model_};
    stop |= callback(progress) == CallbackAction::stop;
  }
  const bool interrupted = options_.interrupted() && options_.interrupted()();
  if (stop || interrupted) {
    if (!record()) return StopReason::diverged;
    return interrupted ? StopReason::interrupted : StopReason::callback;
  }
  checkpoint_if_due();
  return breakdown_ ? std::optional(StopReason::diverged) : std::nullopt;
}

bool Fit::record() {
  if (pending_.empty()) return true;
  std::vector<Tensor> losses, parameters_sums;
  losses.reserve(pending_.size());
  parameters_sums.reserve(pending_.size());
  for (const auto& pending : pending_) {
    losses.push_back(pending.report.losses);
    parameters_sums.push_back(pending.report.parameters_sum);
  }
  const auto table = table_of(losses, parameters_sums).to(torch::kCPU);
  const auto columns = result_.columns.size();
  const auto* values = table.const_data_ptr<double>();
  for (const auto& pending : pending_) {
    const auto epoch = static_cast<std::int64_t>(result_.history.size());
    EpochLoss loss{epoch, pending.learning_rate, {values, values + columns}};
    const bool finite_parameters = std::isfinite(values[columns]);
    values += columns + 1;
    if (!all_finite(loss.values)) {
      breakdown_ = Breakdown{Breakdown::Where::loss, epoch, learning_rate(std::max<std::int64_t>(epoch - 1, 0)), loss.values};
      return false;
    }
    if (!finite_parameters) {
      breakdown_ = Breakdown{Breakdown::Where::parameters, epoch, loss.learning_rate, loss.values};
      return false;
    }
    result_.history.push_back(loss);
    if (stops_) stops_->record(totals_of(pending.report));
  }
  pending_.clear();
  keep_state();
  return true;
}

void Fit::keep_state() {
  if (candidate_ && candidate_->epochs < done_) {
    good_ = std::move(*candidate_);
    candidate_.reset();
  }
  const auto interval = options_.optimizer() == OptimizerKind::lbfgs ? 1 : epochs_between_kept_states;
  if (!candidate_ && done_ - good_.epochs >= interval) candidate_ = present_state();
}

void Fit::keep_present_state() {
  if (good_.epochs != done_ && !candidate_) candidate_ = present_state();
}

bool Fit::evaluate_final() {
  if (!options_.checkpoint().empty()) keep_present_state();  // before a random term draws the numbers of the next epoch
  const torch::NoGradGuard no_grad;
  auto sky = model_->make_sky();
  const ModelOutput output(model_->coords(), model_->base(), std::move(sky));
  const auto value = objective_.evaluate(output);
  const auto table = value.table().sum(1).to(torch::kCPU);
  const auto* values = table.const_data_ptr<double>();
  result_.loss = {done_, learning_rate(done_), {values, values + result_.columns.size()}};
  if (all_finite(result_.loss.values)) {
    look_at_final(output, value.nll);
    return true;
  }
  breakdown_ = Breakdown{Breakdown::Where::loss, done_, learning_rate(std::max<std::int64_t>(done_ - 1, 0)), result_.loss.values};
  return false;
}

double Fit::flux_of(const Tensor& sky) const { return sky.sum(torch::kFloat64).item<double>() * model_->coords().cell_area(); }

void Fit::mark_flux_if_due() {
  if (done_ != marked_epochs(options_.epochs()) || (flux_mark_ && flux_mark_->epochs == done_)) return;
  flux_mark_ = {done_, flux_of(sky_beside_fit(*model_))};
}

void Fit::look_at_final(const ModelOutput& output, const Tensor& nll) {
  final_image_ = {flux_of(output.sky), nll.numel(), 0, std::nullopt};
  Tensor empty;
  try {
    empty = objective_.likelihood().chi_squared(at::zeros_like(output.sky)).to(torch::kFloat64) / (2 * objective_.normaliser());
  } catch (const std::exception&) {
    return;  // a likelihood of the user's own that takes no empty image
  }
  final_image_.dead = ((nll - empty).abs() <= empty_difference * empty.abs()).sum().item<std::int64_t>();
  final_image_.empty_nll = empty.sum().item<double>();
}

StopReason Fit::verdict(StopReason reason) {
  result_.stop_reason = reason;
  result_.epochs = done_;
  auto found = judge_fit(result_, final_image_, flux_mark_);
  result_.diagnosis = std::move(found.diagnosis);
  result_.warnings = std::move(found.warnings);
  return found.diverged ? StopReason::diverged : reason;
}

void Fit::rewind() {
  // The loss before the broken update was finite; a broken loss belongs to parameters one update later.
  auto target = breakdown_->where == Breakdown::Where::loss ? breakdown_->epoch - 1 : breakdown_->epoch;
  target = std::max(target, good_.epochs);
  candidate_.reset();
  pending_.clear();
  go_to(good_);
  for (done_ = good_.epochs; done_ < target; ++done_) {
    has_converged();
    const auto report = take_step(done_);
    const auto values = table_of({report.losses}, {report.parameters_sum}).to(torch::kCPU);
    if (values.isfinite().all().item<bool>()) {
      if (stops_) stops_->record(totals_of(report));
      continue;
    }
    // Only where steps do not repeat bit for bit (some operations on a GPU): the kept state itself is good.
    go_to(good_);
    done_ = good_.epochs;
    break;
  }
  result_.history.resize(static_cast<std::size_t>(done_));
  result_.diagnosis = diagnose(*breakdown_, *model_, objective_);
  evaluate_final();
}

void Fit::checkpoint_if_due() {
  if (options_.checkpoint().empty()) return;
  const auto interval = options_.checkpoint_interval();
  const std::chrono::duration<double> since = Clock::now() - last_checkpoint_;
  if (interval > 0 ? done_ % interval != 0 : since.count() < seconds_between_checkpoints) return;
  if (record()) write_checkpoint();
}

void Fit::write_checkpoint() {
  const auto begin = Clock::now();
  keep_present_state();
  const auto& state = good_.epochs == done_ ? good_ : *candidate_;
  try {
    write_history_files();
    const Checkpoint checkpoint{.epochs = done_,
                                .step = to_string(step_->kind()),
                                .state = state.tensors,
                                .columns = result_.columns,
                                .history = result_.history,
                                .history_files = history_files_,
                                .settings = run_settings(*model_, objective_, options_),
                                .notes = options_.notes(),
                                .read_from = {}};
    mpol::write_checkpoint(options_.checkpoint(), checkpoint, existing_checkpoint_);
    existing_checkpoint_ = Existing::keep_as_previous;
    checkpoint_epochs_ = done_;
    result_.checkpoint_failure.clear();
  } catch (const FileError& error) {
    // The fit itself is well, and there may be room by the next time. One warning for all failures in a row.
    if (result_.checkpoint_failure.empty()) {
      log_warning(fmt::format("no checkpoint after {} epochs: {}; the fit goes on and tries again", done_, error.what()));
    }
    result_.checkpoint_failure = error.what();
  }
  last_checkpoint_ = Clock::now();
  result_.seconds_checkpoints += std::chrono::duration<double>(last_checkpoint_ - begin).count();
}

/// Those of other runs go when both checkpoints are known to be of this one.
void Fit::write_history_files() {
  const auto complete = result_.history.size() / LossHistory::block_rows;
  history_files_.resize(std::min(history_files_.size(), complete));  // a fit that diverged goes back
  while (history_files_.size() < complete) {
    history_files_.push_back(detail::write_history_block(options_.checkpoint(), result_.history, history_files_.size()));
  }
  if (++checkpoints_written_ == 3) detail::remove_other_history_blocks(options_.checkpoint(), history_files_);
}

double Fit::seconds() {
  timer_->stop();
  return timer_->seconds();
}

}  // namespace mpol::detail
