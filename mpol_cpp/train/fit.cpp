#include <mpol_cpp/train/fit.h>

#include <algorithm>
#include <cmath>
#include <numeric>
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
constexpr std::int64_t growth_of_groups = 4;
constexpr double seconds_between_checkpoints = 30.0;
constexpr std::string_view stop_prefix = "stop.";  // of what stops_ keeps in a state
constexpr const char* flux_name = "flux.marked";
constexpr std::string_view trail_prefix = "trail.";
constexpr double image_tolerance = 20, flux_tolerance = 3;  // of a converged fit, beside that of its loss

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

/// The tensors whose names have a prefix, without it.
NamedTensors part_of(const NamedTensors& tensors, std::string_view prefix) {
  NamedTensors part;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) part[name.substr(prefix.size())] = tensor;
  }
  return part;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

/// All columns of all problems of each report, then the sum of the parameters: (reports, columns problems + 1) on the CPU.
Tensor fetch(const std::vector<Tensor>& losses, const std::vector<Tensor>& parameters_sums) {
  return at::cat({at::stack(losses).flatten(1), at::stack(parameters_sums).unsqueeze(1)}, 1).to(torch::kCPU);
}

}  // namespace

Fit::Fit(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options)
    : Fit(std::move(model), objective, options, {}, std::nullopt) {}

Fit::Fit(std::shared_ptr<ImageModel> model, const Objective& objective, const TrainOptions& options, const StepMaker& make,
         std::optional<FetchLimits> limits)
    : model_(std::move(model)),
      local_objective_(objective),
      objective_(objective.over(options.ranks())),
      options_(options),
      ranks_(options.ranks() && !options.ranks()->is_alone() ? options.ranks() : nullptr) {
  const auto device = place();
  step_ = make ? make(model_, objective_, options_) : make_step(model_, objective_, options_);
  limits_ = limits.value_or(device.is_cpu() ? FetchLimits{1} : FetchLimits{});
  if (options_.stops_each()) {
    const auto problems = static_cast<std::size_t>(c10::multiply_integers(problem_shape(*model_)));
    stops_.emplace(problems, options_.stop_relative(), options_.stop_window());
    stopped_.resize(problems);
    if (!step_->stops_by_itself()) limits_.epochs = 1;
  }
  if (options_.optimizer() == OptimizerKind::lbfgs || step_->waits_for_device()) limits_.epochs = 1;
  if (ranks_) channels_.emplace(*ranks_, model_->base().size(-3), model_->coords().npix());
  if (ranks_) limits_.epochs = 1;  // no rank may look by a clock of its own
  at::manual_seed(options_.seed());
  result_.columns = objective_.columns();
  result_.step = step_->kind();
  result_.step_reason = step_->reason();
}

torch::Device Fit::place() {
  for (auto* module : {&model_->as_module(), &objective_.likelihood().as_module()}) {
    if (options_.device()) module->to(*options_.device());
  }
  if (options_.dtype()) model_->as_module().to(*options_.dtype());
  const auto device = common_device(*model_, objective_.likelihood());
  timer_.emplace(device);
  return device;
}

TrainResult Fit::run() {
  resume();
  good_ = present_state();
  auto reason = train();
  if (reason != StopReason::diverged && !evaluate_final()) reason = StopReason::diverged;
  if (reason == StopReason::diverged) rewind();
  else reason = verdict(reason);
  if (reason == StopReason::converged || reason == StopReason::epochs) result_.gap = step_->gap();
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
  check_same_checkpoint(checkpoint);
  if (!checkpoint) return;
  check_same_run(path, checkpoint->settings, run_settings(*model_, objective_, options_));
  if (checkpoint->epochs > options_.epochs()) {
    throw FileError(fmt::format("{} has {} epochs done, more than the {} asked for: ask for at least {}", path.string(),
                                checkpoint->epochs, options_.epochs(), checkpoint->epochs));
  }
  try {
    go_to({checkpoint->epochs, channels_ ? channels_->part(checkpoint->state) : checkpoint->state});
  } catch (const FileError& error) {
    throw FileError(fmt::format("{} does not fit this run: {}", path.string(), error.what()));
  }
  if (checkpoint->read_from != path) existing_checkpoint_ = Existing::replace;
  done_ = result_.resumed_from = checkpoint_epochs_ = checkpoint->epochs;
  result_.history = checkpoint->history;
  history_files_ = checkpoint->history_files;
  look_at_image_if_due();
}

void Fit::check_same_checkpoint(const std::optional<Checkpoint>& checkpoint) const {
  if (!ranks_) return;
  std::vector<double> found = {checkpoint ? 1.0 : 0.0, checkpoint ? static_cast<double>(checkpoint->epochs) : 0.0};
  const auto own = found;
  ranks_->sum(found);  // also waits until all have read, before the first writes the next one
  const auto size = static_cast<double>(ranks_->size());
  if (found[0] != size * own[0] || found[1] != size * own[1]) {
    throw FileError(fmt::format("rank {} {} {}, other ranks do not see the same: all need the same folder", ranks_->rank(),
                                checkpoint ? "sees" : "does not see", options_.checkpoint().string()));
  }
}

double Fit::learning_rate(std::int64_t epoch) const { return options_.learning_rate() * options_.schedule().factor(epoch); }

StopReason Fit::train() {
  while (done_ < options_.epochs()) {
    if (has_converged(done_)) return StopReason::converged;
    const auto begin = Clock::now();
    const auto epochs = epochs_until_look();
    take_steps(epochs);
    const auto ending = look();
    adapt_group(epochs, begin);
    if (ending && ending->reason == StopReason::diverged) return StopReason::diverged;
    if (ending) return_to(ending->epochs);
    look_at_image_if_due();
    keep_state();
    if (ranks_ ? told_.stop : is_interrupted()) return StopReason::interrupted;
    if (ending) {
      if (ending->reason == StopReason::converged) has_converged(done_);
      return ending->reason;
    }
    checkpoint_if_due();
  }
  return StopReason::epochs;
}

std::int64_t Fit::epochs_until_look() const {
  auto epochs = std::min(group_, options_.epochs() - done_);
  const auto end_at = [&](std::int64_t epoch) {
    if (epoch > done_) epochs = std::min(epochs, epoch - done_);
  };
  const auto end_at_multiple_of = [&](std::int64_t interval) {
    if (interval > 0) end_at((done_ / interval + 1) * interval);
  };
  end_at(next_image());
  end_at_multiple_of(options_.model_interval());
  if (!options_.checkpoint().empty()) end_at_multiple_of(options_.checkpoint_interval());
  return epochs;
}

void Fit::adapt_group(std::int64_t epochs, Clock::time_point begin) {
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const double fitting = limits_.seconds * static_cast<double>(epochs) / std::max(seconds, 1e-9);
  const auto most = std::min(limits_.epochs, growth_of_groups * group_);
  group_ = fitting < static_cast<double>(most) ? std::max<std::int64_t>(static_cast<std::int64_t>(fitting), 1) : most;
}

void Fit::take_steps(std::int64_t epochs) {
  for (const auto end = done_ + epochs; done_ < end;) {
    const double rate = learning_rate(done_);
    std::int64_t alike = 1;
    while (done_ + alike < end && learning_rate(done_ + alike) == rate) ++alike;
    for (auto& report : step_->take_several(rate, alike)) pending_.push_back({rate, std::move(report)});
    done_ += alike;
  }
}

bool Fit::has_converged(std::int64_t done) {
  if (const auto tolerance = options_.wanted_tolerance()) {
    return done == done_ && trail_.newest() == done_ && has_settled_within(*tolerance);
  }
  if (!stops_) return mpol::has_converged(result_.history, options_.stop_relative(), options_.stop_window());
  stops_->decide(done);
  if (const auto stopped = stops_->stopped(); stopped != stopped_) {
    stopped_ = stopped;
    if (!step_->stops_by_itself()) step_->set_stopped(stopped_);
  }
  return stops_->all_stopped();
}

TrainingState Fit::present_state() const {
  auto state = capture_state(done_, *model_, objective_, *step_);
  if (flux_mark_) {
    state.tensors[flux_name] =
        at::tensor({static_cast<double>(flux_mark_->epochs), flux_mark_->flux, flux_mark_->magnitude}, torch::kFloat64);
  }
  for (const auto& [name, tensor] : trail_.state()) state.tensors[std::string(trail_prefix) + name] = tensor;
  if (!stops_) return state;
  for (const auto& [name, tensor] : stops_->state()) state.tensors[std::string(stop_prefix) + name] = tensor;
  return state;
}

void Fit::go_to(const TrainingState& state) {
  restore_state(state, *model_, objective_, *step_);
  flux_mark_.reset();
  if (const auto found = state.tensors.find(flux_name); found != state.tensors.end()) {
    const auto mark = found->second.to(torch::kCPU, torch::kFloat64);
    if (mark.numel() != 2 && mark.numel() != 3)
      throw FileError(fmt::format("the saved state has a {} of shape {}", flux_name, mark.sizes().vec()));
    flux_mark_ = {static_cast<std::int64_t>(mark[0].item<double>()), mark[1].item<double>(),
                  mark.numel() == 3 ? mark[2].item<double>() : 0};
  }
  trail_.load_state(part_of(state.tensors, trail_prefix));
  if (!stops_) return;
  stops_->load_state(part_of(state.tensors, stop_prefix));
  step_->set_stopped(stopped_ = stops_->stopped());
  if (step_->stops_by_itself()) step_->set_totals(stops_->state().at("totals"));
}

Fit::Fetched Fit::fetched_of(std::span<const double> row) const {
  const auto columns = result_.columns.size();
  const auto problems = (row.size() - 1) / columns;
  const auto* values = row.data();
  Fetched fetched{std::vector<double>(columns), {values, values + problems}, std::isfinite(row.back())};
  for (auto& sum : fetched.losses) sum = std::accumulate(values, values + problems, 0.0), values += problems;
  return fetched;
}

std::optional<Fit::Ending> Fit::look() {
  std::vector<Tensor> losses, parameters_sums;
  for (const auto& pending : pending_) {
    losses.push_back(pending.report.losses);
    parameters_sums.push_back(pending.report.parameters_sum);
  }
  auto table = fetch(losses, parameters_sums);
  if (ranks_) table = summed_with_signs(table);
  const auto* values = table.const_data_ptr<double>();
  const auto row = static_cast<std::size_t>(table.size(1));
  const auto begin_seconds = seconds_;
  if (!options_.callbacks().empty()) seconds_ = seconds();
  const auto looked_at = std::exchange(pending_, {});
  for (std::size_t i = 0; i < looked_at.size(); ++i) {
    const auto epoch = static_cast<std::int64_t>(result_.history.size());
    auto fetched = fetched_of({values + i * row, row});
    EpochLoss loss{epoch, looked_at[i].learning_rate, std::move(fetched.losses)};
    if (!all_finite(loss.values)) {
      breakdown_ = Breakdown{Breakdown::Where::loss, epoch, learning_rate(std::max<std::int64_t>(epoch - 1, 0)), loss.values};
    } else if (!fetched.finite_parameters) {
      breakdown_ = Breakdown{Breakdown::Where::parameters, epoch, loss.learning_rate, loss.values};
    }
    if (breakdown_) return Ending{epoch, StopReason::diverged};
    result_.history.push_back(loss);
    if (stops_) stops_->record(std::move(fetched.totals));
    const double share = static_cast<double>(i + 1) / static_cast<double>(looked_at.size());
    if (call_back(begin_seconds + share * (seconds_ - begin_seconds))) return Ending{epoch + 1, StopReason::callback};
    const bool last = i + 1 == looked_at.size();  // of which train() finds out itself, unless its epochs are done
    if (!last && has_converged(epoch + 1)) return Ending{epoch + 1, StopReason::converged};
  }
  return std::nullopt;
}

bool Fit::call_back(double seconds) {
  if (options_.callbacks().empty()) return false;
  bool stop = false;
  const auto loss = result_.history.back();
  for (const auto& callback : options_.callbacks()) {
    const Progress progress{loss, result_.columns, options_.epochs(), seconds, *model_, forecast_.expected_end()};
    stop |= callback(progress) == CallbackAction::stop;
  }
  return stop;
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
  const ModelOutput output(model_->coords(), model_->base(), std::move(sky), model_->signed_pixels());
  const auto value = objective_.evaluate(output);
  auto table = value.table().sum(1).to(torch::kCPU, torch::kFloat64).contiguous();
  sum_over_ranks(table);
  const auto* values = table.const_data_ptr<double>();
  result_.loss = {done_, learning_rate(done_), {values, values + result_.columns.size()}};
  if (all_finite(result_.loss.values)) {
    look_at_final(output, value.nll);
    return true;
  }
  breakdown_ = Breakdown{Breakdown::Where::loss, done_, learning_rate(std::max<std::int64_t>(done_ - 1, 0)), result_.loss.values};
  return false;
}

bool Fit::is_interrupted() const { return options_.interrupted() && options_.interrupted()(); }

bool Fit::checkpoint_is_old() const {
  return std::chrono::duration<double>(Clock::now() - last_checkpoint_).count() >= seconds_between_checkpoints;
}

/// One exchange an epoch: whoever waits for neighbours on a busy machine waits long each time.
Tensor Fit::summed_with_signs(const Tensor& table) {
  const auto signs =
      at::tensor({is_interrupted() ? 1.0 : 0.0, is_first_rank() && checkpoint_is_old() ? 1.0 : 0.0}, torch::kFloat64);
  auto all = at::cat({table.flatten(), signs});
  sum_over_ranks(all);
  told_ = {all[-2].item<double>() > 0, all[-1].item<double>() > 0};
  return all.narrow(0, 0, table.numel()).view(table.sizes()).contiguous();
}

bool Fit::on_any_rank(bool here) const { return ranks_ ? ranks_->any(here) : here; }

void Fit::sum_over_ranks(Tensor& numbers) const {
  if (ranks_) ranks_->all_reduce_sum(numbers);
}

std::optional<ImageTrail::Change> Fit::change_of_image() const {
  if (!ranks_) return trail_.change();
  return trail_.change([this](std::vector<double>& numbers) { ranks_->sum(numbers); });
}

double Fit::flux_of(const Tensor& sky) const {
  auto sum = sky.sum(torch::kFloat64).to(torch::kCPU);
  sum_over_ranks(sum);
  return sum.item<double>() * model_->coords().cell_area();
}

std::int64_t Fit::next_image() const { return options_.wanted_tolerance() ? trail_.next() : marked_epochs(options_.epochs()); }

void Fit::look_at_image_if_due() {
  if (done_ != next_image() || (flux_mark_ && flux_mark_->epochs == done_)) return;
  const auto sky = sky_beside_fit(*model_);
  if (const auto tolerance = options_.wanted_tolerance()) {
    trail_.record(sky);
    if (done_ >= options_.fewest_epochs())
      step_->hold_settled(trail_.still_images(image_tolerance * *tolerance, flux_tolerance * *tolerance));
  } else {
    flux_mark_ = {done_, flux_of(sky), flux_of(sky.abs())};
  }
}

bool Fit::has_settled_within(double tolerance) {
  const auto change = change_of_image();
  if (!change) return false;
  const double of_image = change->image / (image_tolerance * tolerance), of_flux = change->flux / (flux_tolerance * tolerance);
  forecast_.note(done_, std::max({of_image, of_flux, fall_of_loss(result_.history) / tolerance}));
  if (done_ < options_.fewest_epochs()) return false;
  if (has_vanished()) return true;
  if (of_image > 1 || of_flux > 1) return false;
  if (!is_proximal(options_.optimizer())) return has_settled(result_.history, tolerance);
  const bool has_momentum = options_.optimizer() != OptimizerKind::admm;
  return step_->has_converged() && !(has_momentum && may_fall_far(result_.history, tolerance));
}

/// The likelihood of images without any light; undefined for one of the user's own that takes none.
Tensor Fit::empty_nll(const Tensor& sky) const {
  try {
    return objective_.nll(objective_.likelihood().chi_squared(at::zeros_like(sky))).to(torch::kCPU).contiguous();
  } catch (const std::exception&) {
    return {};
  }
}

/// Whether the image has shrunk until the data do not tell it from an empty one, and nothing changes that: both by less than a
/// thousandth of chi^2/2. How small it is then does not matter.
bool Fit::has_vanished() {
  constexpr double negligible = 1e-3;
  const double least = negligible / std::ranges::max(objective_.normalizers());
  if (fall_of_total(result_.history) > least) return false;
  const torch::NoGradGuard no_gradient;
  auto empty = empty_nll(sky_beside_fit(*model_));
  if (on_any_rank(!empty.defined())) return false;
  sum_over_ranks(empty);
  return std::abs(empty.sum().item<double>() - result_.history.back().nll()) < least;
}

void Fit::look_at_final(const ModelOutput& output, const Tensor& nll) {
  final_image_ = {.flux = flux_of(output.sky), .problems = nll.numel()};
  auto empty = empty_nll(output.sky);
  if (!empty.defined()) return;
  auto own = nll.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  if (ranks_) own = own.clone();
  sum_over_ranks(own);
  sum_over_ranks(empty);
  final_image_.dead = ((own - empty).abs() <= empty_difference * empty.abs()).sum().item<std::int64_t>();
  final_image_.empty_nll = empty.sum().item<double>();
}

StopReason Fit::verdict(StopReason reason) {
  result_.stop_reason = reason;
  result_.epochs = done_;
  if (const auto change = change_of_image()) {
    flux_mark_ = {change->since, change->flux_before * model_->coords().cell_area(), 0};
    final_image_.change = change->image;
  }
  auto found = judge_fit(result_, final_image_, flux_mark_, options_.wanted_tolerance());
  result_.diagnosis = std::move(found.diagnosis);
  result_.warnings = std::move(found.warnings);
  return found.diverged ? StopReason::diverged : reason;
}

void Fit::return_to(std::int64_t epochs) {
  if (epochs == done_) return;
  if (candidate_ && candidate_->epochs < epochs) good_ = std::move(*candidate_);
  repeat_up_to(epochs);
}

void Fit::rewind() {
  // The loss before the broken update was finite; a broken loss belongs to parameters one update later.
  const auto target = breakdown_->where == Breakdown::Where::loss ? breakdown_->epoch - 1 : breakdown_->epoch;
  repeat_up_to(std::max(target, good_.epochs));
  result_.diagnosis = diagnose(*breakdown_, *model_, local_objective_);  // each rank by itself
  evaluate_final();
}

void Fit::repeat_up_to(std::int64_t epochs) {
  candidate_.reset();
  pending_.clear();
  go_to(good_);
  for (done_ = good_.epochs; done_ < epochs; ++done_) {
    has_converged(done_);
    const auto report = step_->take(learning_rate(done_));
    auto values = fetch({report.losses}, {report.parameters_sum});
    sum_over_ranks(values);
    if (values.isfinite().all().item<bool>()) {
      if (stops_) stops_->record(fetched_of({values.const_data_ptr<double>(), static_cast<std::size_t>(values.numel())}).totals);
      continue;
    }
    // Only where steps do not repeat bit for bit (some operations on a GPU): the kept state itself is good.
    go_to(good_);
    done_ = good_.epochs;
    break;
  }
  result_.history.resize(static_cast<std::size_t>(done_));
}

void Fit::checkpoint_if_due() {
  if (options_.checkpoint().empty()) return;
  const auto interval = options_.checkpoint_interval();
  const bool by_clock = ranks_ ? told_.checkpoint : checkpoint_is_old();
  if (interval > 0 ? done_ % interval == 0 : by_clock) write_checkpoint();
}

void Fit::write_checkpoint() {
  const auto begin = Clock::now();
  keep_present_state();
  const auto& own = good_.epochs == done_ ? good_ : *candidate_;
  const auto state = channels_ ? channels_->gather(own.tensors) : own.tensors;
  auto settings = run_settings(*model_, objective_, options_);
  bool failed = false;
  try {
    if (is_first_rank()) write_history_files();
    const Checkpoint checkpoint{.epochs = done_,
                                .step = to_string(step_->kind()),
                                .state = state,
                                .columns = result_.columns,
                                .history = result_.history,
                                .history_files = history_files_,
                                .settings = std::move(settings),
                                .notes = options_.notes(),
                                .read_from = {}};
    if (is_first_rank()) mpol::write_checkpoint(options_.checkpoint(), checkpoint, existing_checkpoint_);
    existing_checkpoint_ = Existing::keep_as_previous;
    result_.checkpoint_failure.clear();
  } catch (const FileError& error) {
    // The fit itself is well, and there may be room by the next time. One warning for all failures in a row.
    if (result_.checkpoint_failure.empty()) {
      log_warning(fmt::format("no checkpoint after {} epochs: {}; the fit goes on and tries again", done_, error.what()));
    }
    result_.checkpoint_failure = error.what();
    failed = true;
  }
  if (!on_any_rank(failed)) checkpoint_epochs_ = done_;
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
