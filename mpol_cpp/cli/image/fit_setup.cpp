#include <mpol_cpp/cli/image/fit_setup.h>

#include <algorithm>
#include <utility>
#include <variant>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/options/sky_file.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/resumed_run.h>
#include <mpol_cpp/cli/image/start_image.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/chunked_likelihood.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/mini_batch_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/serialize/array_room.h>

namespace mpol::cli {
namespace {

constexpr double default_degrees_of_freedom = 4;

template <typename Holder>
std::shared_ptr<Likelihood> on_device(Holder likelihood, torch::Device device) {
  likelihood->to(device);
  return likelihood.ptr();
}

std::shared_ptr<Likelihood> make_exact(const LikelihoodData& from) {
  return on_device(
      ExactLikelihood(from.dataset->coords(), from.visibilities, from.channels, KernelStorage{from.options.kernel_folder}),
      from.device);
}

std::shared_ptr<Likelihood> make_gridded(const LikelihoodData& from) {
  GriddedDataset own(std::dynamic_pointer_cast<GriddedDatasetImpl>(from.dataset->clone()));
  own->to(from.device, from.options.data.dtype);
  return GriddedLikelihood(own).ptr();
}

/// The likelihood of all samples, of batches or of chunks of them, for either noise.
std::shared_ptr<Likelihood> make_loose(const LikelihoodData& from) {
  const auto& options = from.options;
  const auto& coords = from.dataset->coords();
  const bool student = options.noise == NoiseModel::Kind::student;
  const auto noise =
      student ? NoiseModel::student(options.degrees_of_freedom.value_or(default_degrees_of_freedom)) : NoiseModel::gaussian();
  if (options.batch_size) {
    const auto batches = VisibilitySamplerOptions()
                             .batch_size(*options.batch_size)
                             .sampling(options.sampling.value_or(Sampling::random))
                             .seed(static_cast<std::uint64_t>(options.seed));
    return on_device(MiniBatchLikelihood(coords, from.visibilities, from.channels, batches, noise), from.device);
  }
  if (options.in_chunks) {
    auto chunks = ChunkedLikelihoodOptions().noise(noise).memory_budget(
        memory_for_chunks(options, from.dataset, from.visibilities, from.device));
    // What the reader has put on disk stays there.
    if (is_on_disk(from.visibilities.data())) chunks.residency(DataResidency::disk);
    return on_device(ChunkedLikelihood(coords, from.visibilities, from.channels, chunks), from.device);
  }
  if (student) return on_device(NoiseLikelihood(coords, from.visibilities, from.channels, noise), from.device);
  return on_device(LooseLikelihood(coords, from.visibilities, from.channels), from.device);
}

}  // namespace

GriddedNet make_model(const ImageOptions& options, const FitData& data) {
  const SkyTarget target{data.coords(), data.dataset->nchan(), data.visibilities.observation()};
  const bool convex = choose_optimizer(options).is_convex();
  auto model =
      start_options(options.start, target, options.data.dtype, data, convex ? nonnegative_mapping() : softplus_mapping());
  if (!options.mask.empty()) {
    const auto mask = read_mask(options.mask, target);
    model.pixel_mapping(convex ? nonnegative_mapping(mask) : softplus_mapping(mask));
  }
  return GriddedNet(model, options.no_hann ? Smoothing::none : Smoothing::hann);
}

std::vector<std::string> regridding_words(const ImageOptions& options, const FitData& data) {
  const SkyTarget target{data.coords(), data.dataset->nchan(), data.visibilities.observation()};
  std::vector<std::string> all;
  const auto add = [&](const std::filesystem::path& path, const char* option, SkyUnit unit) {
    if (auto words = regrid_words(path, option, target, unit); !words.empty()) all.push_back(std::move(words));
  };
  if (const auto* file = std::get_if<StartFile>(&options.start)) add(file->path, "--start", SkyUnit::brightness);
  if (!options.mask.empty()) add(options.mask, "--mask", SkyUnit::mask);
  return all;
}

const std::vector<LikelihoodChoice>& likelihood_choices() {
  static const std::vector<LikelihoodChoice> all = {
      {"exact", FitLikelihood::exact, "of the visibilities themselves", LikelihoodKind::exact, make_exact},
      {"gridded", FitLikelihood::gridded, "of their cell averages (as MPoL)", LikelihoodKind::gridded, make_gridded},
      {"loose", FitLikelihood::loose, "of the visibilities by nonuniform transforms, whose cost grows with their number",
       LikelihoodKind::loose, make_loose},
  };
  return all;
}

const std::vector<NamedChoice<FitLikelihood>>& likelihood_names() {
  static const auto names = [] {
    std::vector<NamedChoice<FitLikelihood>> all;
    all.reserve(likelihood_choices().size());
    for (const auto& choice : likelihood_choices()) all.push_back({choice.name, choice.value});
    return all;
  }();
  return names;
}

const LikelihoodChoice& likelihood_choice(FitLikelihood likelihood) {
  const auto& all = likelihood_choices();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& choice) { return choice.value == likelihood; });
  if (found == all.end()) throw ValueError("a likelihood is none of likelihood_choices()");
  return *found;
}

std::string name_of(FitLikelihood likelihood) { return likelihood_choice(likelihood).name; }

std::shared_ptr<Likelihood> make_likelihood(const ImageOptions& options, const Visibilities& visibilities,
                                            const ChannelMap& channels, const GriddedDataset& dataset, torch::Device device) {
  return likelihood_choice(options.likelihood).make({options, visibilities, channels, dataset, device});
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

TrainOptions train_options(const ImageOptions& options, const RunRecord& record, const std::filesystem::path& state) {
  const auto stop = parse_stop_relative(options.stop_relative);
  const auto chosen = choose_optimizer(options);
  TrainOptions train;
  apply(options.update, *options.epochs, train);
  return train.optimizer(chosen.kind)
      .epochs(*options.epochs)
      .tolerance(chosen.tolerance)
      .stop_relative(stop.change)
      .stop_window(stop.window)
      .seed(static_cast<std::uint64_t>(options.seed))
      .step(options.step)
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
