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
#include <mpol_cpp/likelihoods/likelihood_kind.h>
#include <mpol_cpp/serialize/array_room.h>

namespace mpol::cli {
namespace {

constexpr double default_degrees_of_freedom = 4;

}  // namespace

GriddedNet make_model(const ImageOptions& options, const FitData& data, const PlaceInCube& place) {
  const SkyTarget target{data.coords(), data.dataset->nchan(), data.visibilities.observation(), place};
  const bool convex = choose_optimizer(options).is_convex();
  const auto mapping = [&](const Tensor& mask) {
    if (options.sign == PixelSign::either) return either_sign_mapping(mask);
    return convex ? nonnegative_mapping(mask) : softplus_mapping(mask);
  };
  auto model = start_options(options.start, target, options.data.dtype, data, mapping({}));
  if (!options.mask.empty()) model.pixel_mapping(mapping(read_mask(options.mask, target)));
  return GriddedNet(model, options.no_hann ? Smoothing::none : Smoothing::hann);
}

std::vector<std::string> regridding_words(const ImageOptions& options, const SkyTarget& target) {
  std::vector<std::string> all;
  const auto add = [&](const std::filesystem::path& path, const char* option, SkyUnit unit) {
    if (auto words = regrid_words(path, option, target, unit); !words.empty()) all.push_back(std::move(words));
  };
  if (const auto* file = std::get_if<StartFile>(&options.start)) add(file->path, "--start", SkyUnit::brightness);
  if (!options.mask.empty()) add(options.mask, "--mask", SkyUnit::mask);
  return all;
}

std::shared_ptr<Likelihood> make_likelihood(const ImageOptions& options, const Visibilities& visibilities,
                                            const ChannelMap& channels, const GriddedDataset& dataset, torch::Device device) {
  LikelihoodSource source{visibilities, channels, dataset, options.data.dtype, device, KernelStorage{options.kernel_folder}};
  if (options.noise == NoiseModel::Kind::student)
    source.noise = NoiseModel::student(options.degrees_of_freedom.value_or(default_degrees_of_freedom));
  if (options.batch_size) {
    source.batches = VisibilitySamplerOptions()
                         .batch_size(*options.batch_size)
                         .sampling(options.sampling.value_or(Sampling::random))
                         .seed(static_cast<std::uint64_t>(options.seed));
  } else if (options.in_chunks) {
    source.chunks = ChunkedLikelihoodOptions().memory_budget(memory_for_chunks(options, dataset, visibilities, device));
    // What the reader has put on disk stays there.
    if (is_on_disk(visibilities.data())) source.chunks->residency(DataResidency::disk);
  }
  return options.likelihood_kind().make(source);
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

Tensor image_frequencies(const DataOutline& data, std::int64_t image_channels) {
  const auto& frequencies = data.frequencies;
  if (!frequencies.defined() || frequencies.numel() == image_channels) return frequencies;
  return frequencies.mean(0, /*keepdim=*/true);
}

}  // namespace mpol::cli
