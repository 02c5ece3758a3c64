#include <mpol_cpp/cli/image/fit_setup.h>

#include <utility>
#include <variant>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/options/sky_file.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/image/start_image.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>

namespace mpol::cli {
namespace {

constexpr double default_degrees_of_freedom = 4;

StepKind step_of(const std::string& name) {
  for (const auto kind : {StepKind::eager, StepKind::captured, StepKind::fused}) {
    if (name == to_string(kind)) return kind;
  }
  return StepKind::automatic;
}

Sampling sampling_of(const std::string& name) {
  if (name == "compact") return Sampling::compact;
  return name == "uniform" ? Sampling::uniform : Sampling::random;
}

}  // namespace

GriddedNet make_model(const ImageOptions& options, const FitData& data) {
  const SkyTarget target{data.coords(), data.dataset->nchan(), data.visibilities.observation()};
  const bool convex = choose_optimizer(options).is_convex();
  auto model = start_options(parse_start(options.start), target, options.data.torch_dtype(), data,
                             convex ? nonnegative_mapping() : softplus_mapping());
  if (!options.mask.empty()) {
    const auto mask = read_mask(options.mask, target);
    model.pixel_mapping(convex ? nonnegative_mapping(mask) : masked_mapping(mask));
  }
  return GriddedNet(model, options.no_hann ? Smoothing::none : Smoothing::hann);
}

std::vector<std::string> regridding_words(const ImageOptions& options, const FitData& data) {
  const SkyTarget target{data.coords(), data.dataset->nchan(), data.visibilities.observation()};
  std::vector<std::string> all;
  const auto add = [&](const std::filesystem::path& path, const char* option, SkyUnit unit) {
    if (auto words = regrid_words(path, option, target, unit); !words.empty()) all.push_back(std::move(words));
  };
  const auto start = parse_start(options.start);
  if (const auto* file = std::get_if<StartFile>(&start)) add(file->path, "--start", SkyUnit::brightness);
  if (!options.mask.empty()) add(options.mask, "--mask", SkyUnit::mask);
  return all;
}

std::shared_ptr<Likelihood> make_likelihood(const ImageOptions& options, const Visibilities& visibilities,
                                            const ChannelMap& channels, const GriddedDataset& dataset, torch::Device device) {
  const auto on_device = [device](auto likelihood) -> std::shared_ptr<Likelihood> {
    likelihood->to(device);
    return likelihood.ptr();
  };
  const auto& coords = dataset->coords();
  if (options.likelihood == "exact")
    return on_device(ExactLikelihood(coords, visibilities, channels, KernelStorage{options.kernel_folder}));
  const bool student = options.noise == "student";
  const auto noise =
      student ? NoiseModel::student(options.degrees_of_freedom.value_or(default_degrees_of_freedom)) : NoiseModel::gaussian();
  if (options.batch_size) {
    const auto batches = VisibilitySamplerOptions()
                             .batch_size(*options.batch_size)
                             .sampling(sampling_of(options.sampling))
                             .seed(static_cast<std::uint64_t>(options.seed));
    return on_device(MiniBatchLikelihood(coords, visibilities, channels, batches, noise));
  }
  if (student) return on_device(NoiseLikelihood(coords, visibilities, channels, noise));
  if (options.likelihood == "loose") return on_device(LooseLikelihood(coords, visibilities, channels));
  GriddedDataset own(std::dynamic_pointer_cast<GriddedDatasetImpl>(dataset->clone()));
  own->to(device, options.data.torch_dtype());
  return GriddedLikelihood(own).ptr();
}

std::vector<Term> regularizer_terms(const RegularizerOptions& options) {
  std::vector<Term> list;
  for (const auto kind : all_regularizers()) {
    if (!(options.strength(kind) > 0)) continue;
    std::vector<double> settings;
    for (std::size_t i = 0; i < regularizer_of(kind).settings.size(); ++i)
      settings.push_back(options.settings_of(kind)[i].value());
    list.push_back(Term::known(kind, options.strength(kind), std::move(settings)));
  }
  return list;
}

Normalize normalize_of(const std::string& name) {
  if (name == "visibilities") return Normalize::visibilities;
  return name == "none" ? Normalize::none : Normalize::cells;
}

TrainOptions train_options(const ImageOptions& options, const RunRecord& record, const std::filesystem::path& state) {
  const auto stop = parse_stop_relative(options.stop_relative);
  const auto chosen = choose_optimizer(options);
  return TrainOptions()
      .optimizer(chosen.kind)
      .learning_rate(options.learning_rate.value_or(TrainOptions().learning_rate()))
      .epochs(*options.epochs)
      .tolerance(chosen.tolerance)
      .stop_relative(stop.change)
      .stop_window(stop.window)
      .seed(static_cast<std::uint64_t>(options.seed))
      .step(step_of(options.step))
      .checkpoint(state / checkpoint_name)
      .checkpoint_interval(options.checkpoint_interval.value_or(0))
      .resume(options.resume)
      .on_divergence(OnDivergence::off)  // the program says so in its last line
      .fingerprint(record.fingerprint())
      .notes(notes_of_run(options, record));
}

Tensor image_frequencies(const Visibilities& visibilities, std::int64_t image_channels) {
  const auto& frequencies = visibilities.frequencies();
  if (!frequencies.defined() || frequencies.numel() == image_channels) return frequencies;
  return frequencies.mean(0, /*keepdim=*/true);
}

}  // namespace mpol::cli
