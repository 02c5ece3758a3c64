#include <mpol_cpp/cli/run/run_imager.h>

#include <utility>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/run/fit_terms.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/train/trainer.h>

namespace mpol::cli {

ChannelMap channel_map(const ImageOptions& options, std::int64_t nchan) {
  return options.mode == ImageMode::continuum ? ChannelMap::continuum(nchan) : ChannelMap::cube(nchan);
}

RunImager::RunImager(const DataStage& stage, const char* kept_in) : stage_(stage), kept_in_(kept_in), options_(stage.options) {
  options_.regularizers.searched.clear();  // their weights are those that a search begins with
  options_.chi2_bound.reset();             // which is for the data of the run's own fit
  options_.output.quiet = true;
}

Tensor RunImager::image_of(const Visibilities& data) {
  return image_of(data, [](std::shared_ptr<Likelihood> image) { return image; });
}

Tensor RunImager::image_of(const Visibilities& rest, const Beside& beside) {
  const auto channels = channel_map(options_, rest.nchan());
  const DataAverager averager(stage_.coords, rest, DataAveragerOptions().channel_map(channels).scatter_check(ScatterCheck::off));
  const auto cells = averager.to_dataset();
  const FitData fit{rest, channels, cells, imaging_of(options_)};
  const auto likelihood = beside(make_likelihood(options_, rest, channels, cells, stage_.device));
  const auto size = FitSize::of(likelihood, cells->ncells(), options_);
  const auto look = look_at(fit, looking(options_, channels.nchan(), size.normalizer));
  const auto noise = noise_unit(stage_.coords, look.weights.sum, channels.nchan(), size.normalizer);
  ImageSummary unused;
  unused.take(look);
  auto record = stage_.record;
  auto terms = weigh_terms(
      {options_, fit, stage_.coords, noise, size, likelihood, stage_.device, stage_.state, nullptr, nullptr, record, unused});
  if (!model_) begin(fit);
  auto train = train_options(options_, stage_.record, stage_.state);
  train.checkpoint({}).resume(false).interrupted([] { return stop_requested() != 0; });
  const auto result = Trainer(*model_, Objective(likelihood, std::move(terms), options_.normalize), train).fit();
  if (result.stop_reason == StopReason::interrupted) return {};
  if (result.stop_reason == StopReason::diverged) throw DivergedError(result.diagnosis);
  const torch::NoGradGuard no_gradient;
  return (*model_)->make_sky().detach().to(torch::kCPU, torch::kFloat64);
}

NamedTensors RunImager::state() const {
  NamedTensors state;
  if (!model_) return state;
  for (const auto& parameter : (*model_)->named_parameters()) state[parameter.key()] = parameter.value().detach();
  return state;
}

void RunImager::begin(const FitData& fit) {
  model_ = make_model(options_, fit);
  (*model_)->to(stage_.device, options_.data.dtype);
  if (begin_from_.empty()) return;
  const torch::NoGradGuard no_gradient;
  for (auto& parameter : (*model_)->named_parameters()) {
    const auto found = begin_from_.find(parameter.key());
    if (found == begin_from_.end() || found->second.sizes() != parameter.value().sizes())
      throw FileError(fmt::format("{} does not fit this run's image", (stage_.state / kept_in_).string()));
    parameter.value().copy_(found->second);
  }
}

}  // namespace mpol::cli
