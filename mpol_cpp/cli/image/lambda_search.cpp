#include <mpol_cpp/cli/image/lambda_search.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include <ATen/ops/arange.h>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/image/start_image.h>
#include <mpol_cpp/cli/output/unfinished_run.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/crossval/white_noise_data.h>
#include <mpol_cpp/distributed/shares.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/visibilities/join_samples.h>

namespace mpol::cli {
namespace {

constexpr double tolerance_of_folds = 7e-3;
constexpr std::int64_t epochs_of_folds = 2000, blocks_of_fold = 4;
constexpr double decades_of_compass = 0.5;

/// The samples with the image's channels as their own.
Visibilities samples_of_image(const FitData& data) {
  const bool joined = data.channels.nchan() == 1 && data.visibilities.nchan() > 1;
  return joined ? join_samples({data.visibilities}) : data.visibilities;
}

/// The block of each sample as --blocks names them.
Tensor labels_of(const ImageOptions& options, const Visibilities& samples) {
  const auto& kinds = options.data.blocks;
  const auto blocks = blocks_of(*options.data.origins, kinds, blocks_of_fold * options.crossval.folds);
  if (blocks.size() < options.crossval.folds) {
    throw DataError(error_text("--blocks", kinds,
                               fmt::format("makes {} blocks for {} folds", blocks.size(), options.crossval.folds),
                               "give fewer --folds, or smaller blocks, as in --blocks window,time"));
  }
  const auto& labels = blocks.indices;
  const auto rows = labels.size(0);
  if (samples.nvis() == labels.size(1)) {
    if (rows == 1) return labels[0].contiguous();
    throw UsageError(error_text("--blocks", kinds, "a sample of a cube is held out in all its channels", "leave out channel"));
  }
  return labels.expand({samples.nvis() / labels.size(1), labels.size(1)})
      .reshape({-1})
      .contiguous();  // as join_samples() has them
}

Folds folds_of(const ImageOptions& options, const GridCoords& coords, const Visibilities& samples) {
  const auto& crossval = options.crossval;
  const auto how = FoldOptions().folds(crossval.folds).seed(static_cast<std::uint64_t>(options.seed));
  if (crossval.split == FoldSplit::dartboard) return Folds::dartboard(coords, samples, how);
  if (crossval.split == FoldSplit::random) return Folds::random_cells(coords, samples, how);
  if (!options.data.blocks.empty()) return Folds::blocks(labels_of(options, samples), how);
  const auto nvis = samples.nvis(), blocks = std::min(nvis, blocks_of_fold * crossval.folds);
  return Folds::blocks((at::arange(nvis, torch::kInt64) * blocks).div(nvis, "floor"), how);
}

/// Each fold's data on the device that fits it.
std::vector<FoldData> moved(const LambdaSearch& search, std::vector<FoldData> data) {
  std::vector<std::int64_t> owners;
  if (search.devices != nullptr) owners = owners_by_speed(static_cast<std::int64_t>(data.size()), search.devices->speeds());
  for (std::size_t f = 0; f < data.size(); ++f) {
    const auto device = owners.empty() ? search.device : search.devices->devices()[static_cast<std::size_t>(owners[f])];
    for (auto* likelihood : {data[f].train.get(), data[f].test.get()}) likelihood->as_module().to(device);
  }
  return data;
}

/// @param folds  nothing for scores of white noise
std::vector<FoldData> data_of_folds(const LambdaSearch& search, const Visibilities& samples, const std::optional<Folds>& folds) {
  const auto& coords = search.data.coords();
  const auto& options = search.options;
  const auto white = WhiteNoiseOptions().seed(static_cast<std::uint64_t>(options.seed));
  if (options.is_gaussian() && !options.likelihood_kind().of_cells) {  // loose ones have the same chi^2
    return moved(search, folds ? exact_fold_data(coords, samples, *folds) : exact_white_noise_data(coords, samples, white));
  }
  auto whole = options;
  whole.batch_size.reset();
  whole.in_chunks = false;
  const auto first = search.devices == nullptr ? search.device : torch::Device(torch::kCPU);
  const auto make = [&](const Visibilities& part, const GriddedDataset& cells) {
    return make_likelihood(whole, part, ChannelMap::cube(part.nchan()), cells, first);
  };
  return moved(search, folds ? fold_data(coords, samples, *folds, make) : white_noise_data(coords, samples, make, white));
}

/// How the models of folds start: from their own data, where the run's start was made of all of them.
ImageOptions options_of_folds(const ImageOptions& options) {
  auto own = options;
  const auto& start = options.start;
  if (std::holds_alternative<StartDirty>(start) || std::holds_alternative<StartFile>(start)) own.start = StartAuto{};
  return own;
}

SearchAxis axis_of(const LambdaSearch& search, const Term& term) {
  const auto option = option_of(term.name());
  const auto& regularizers = search.options.regularizers;
  SearchAxis axis;
  axis.term = term.name();
  axis.unit = lambda_unit(term, search.noise, search.data.coords()).value();
  axis.start = regularizers.in_units.at(option);
  axis.low = axis.start / 100;
  axis.high = regularizer_of(term.kind()).search_limit.value_or(100 * axis.start);
  const auto& range = regularizers.searched.at(option).range;
  if (!range) return axis;
  for (const double value : range->values()) axis.values.push_back(range->in_units ? value : value / axis.unit);
  axis.low = axis.values.front();
  axis.high = axis.values.back();
  axis.start = std::sqrt(axis.low * axis.high);
  return axis;
}

Search search_for(const ImageOptions& options) {
  switch (search_of(options)) {
    case Search::Kind::grid:
      return Search::grid();
    case Search::Kind::random:
      return Search::random(options.crossval.points, static_cast<std::uint64_t>(options.seed));
    case Search::Kind::compass:
      break;
  }
  return Search::compass(decades_of_compass, options.crossval.points);
}

TrainOptions training_of_folds(const LambdaSearch& search) {
  auto train = train_options(search.options, search.record, search.state);
  if (train.tolerance()) train.tolerance(std::max(tolerance_of_folds, *train.tolerance()));
  train.epochs(std::min(train.epochs(), epochs_of_folds)).interrupted([] { return stop_requested() != 0; });
  return train;
}

std::string c_words(const Scan& scan, const ScanPoint& point) {
  std::string c;
  for (std::size_t axis = 0; axis < scan.axes.size(); ++axis)
    c += fmt::format("{}{} {:.3g} U", axis == 0 ? "" : ", ", scan.axes[axis].term, point.c[axis]);
  return c;
}

void print_point(const Scan& scan) {
  const auto& point = scan.points.back();
  const auto name = point.kind == Score::folds ? "cross-validation" : point.kind == Score::sure ? "SURE" : "GCV";
  const auto freedom = point.kind == Score::folds ? "" : fmt::format(" ({:.0f} degrees of freedom)", point.degrees_of_freedom);
  fmt::print("{} {:>3}: {}: {:.5f}{}\n", name, scan.points.size(), c_words(scan, point), point.score(), freedom);
}

/// What a CrossValidator is made of, but for its device.
struct SearchParts {
  const std::vector<FoldData>& data;
  std::function<FoldModel(torch::Device)> model_on;
  const std::vector<Term>& terms;
  const std::vector<SearchAxis>& axes;
  const CrossValidatorOptions& how;
};

Scan scan_on_devices(DeviceGroup& devices, const SearchParts& parts) {
  Scan scan;
  devices.run([&](const std::shared_ptr<Communicator>& ranks, torch::Device device) {
    auto how = parts.how;
    how.ranks(ranks).speeds(devices.speeds());
    if (!ranks->is_first()) how.on_point({});
    CrossValidator validator(parts.data, parts.model_on(device), parts.terms, parts.axes, how);
    ranks->barrier();  // what a fit changes in the data of its fold is read where the others are made
    auto own = validator.run();
    if (ranks->is_first()) scan = std::move(own);
  });
  return scan;
}

std::vector<SearchAxis> axes_of(const LambdaSearch& search) {
  std::vector<SearchAxis> axes;
  for (const auto& term : search.terms) {
    if (search.options.regularizers.searched.contains(option_of(term.name()))) axes.push_back(axis_of(search, term));
  }
  return axes;
}

/// @param options  those of the search, or with other folds  @param state  where the scan is kept; empty: nowhere
Scan scan_of(const LambdaSearch& search, const ImageOptions& options, const std::vector<SearchAxis>& axes,
             const Search& how_to_search, const std::filesystem::path& state) {
  const auto samples = samples_of_image(search.data);
  std::optional<Folds> folds;
  if (options.crossval.score == Score::folds) folds = folds_of(options, search.data.coords(), samples);
  const auto start = options_of_folds(options);
  const auto model_on = [&](torch::Device device) -> FoldModel {
    return [&, device](const FoldData& fold) -> std::shared_ptr<ImageModel> {
      const FitData own{search.data.visibilities, search.data.channels, fold.train_cells, search.data.imaging};
      GriddedNet net = make_model(start, own);
      net->to(device, options.data.dtype);
      return net.ptr();
    };
  };
  auto how = CrossValidatorOptions()
                 .search(how_to_search)
                 .score(options.crossval.score)
                 .normalize(options.normalize)
                 .folds_at_once(options.crossval.folds_at_once.value_or(0))
                 .train(training_of_folds(search))
                 .state(state)
                 .ranks(search.ranks)
                 .fingerprint(search.record.fingerprint());
  if (options.output.speaks()) how.on_point(print_point);
  const auto data = data_of_folds(search, samples, folds);
  Scan scan;
  if (search.devices == nullptr) scan = CrossValidator(data, model_on(search.device), search.terms, axes, how).run();
  else scan = scan_on_devices(*search.devices, {data, model_on, search.terms, axes, how});
  if (folds) scan.folds_kind = folds->kind();
  if (options.crossval.split == FoldSplit::blocks && !options.data.blocks.empty())
    scan.folds_kind += " of " + options.data.blocks;
  return scan;
}

}  // namespace

Scan cross_validate(const LambdaSearch& search) {
  return scan_of(search, search.options, axes_of(search), search_for(search.options), search.state / scan_name);
}

bool SplitCheck::agrees() const {
  constexpr double half_decade = 0.5 + 1e-6;
  return std::all_of(decades.begin(), decades.end(), [](double distance) { return std::abs(distance) <= half_decade; });
}

SplitCheck check_split(const LambdaSearch& search, const Scan& scan) {
  auto options = search.options;
  auto& split = options.crossval.split;
  split = split == FoldSplit::dartboard ? FoldSplit::random : FoldSplit::dartboard;
  options.output.quiet = true;
  auto axes = axes_of(search);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    axes[axis].start = scan.best().c[axis];
    axes[axis].values.clear();
    axes[axis].low = std::min(axes[axis].low, axes[axis].start / 10);
    axes[axis].high = std::max(axes[axis].high, axes[axis].start * 10);
  }
  const auto most = 1 + 4 * static_cast<std::int64_t>(axes.size());
  const auto other = scan_of(search, options, axes, Search::compass(decades_of_compass, most), {});
  SplitCheck check{.split = split, .c = {}, .decades = {}, .points = std::ssize(other.points), .interrupted = other.interrupted};
  if (other.interrupted) return check;
  check.c = other.best().c;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) check.decades.push_back(std::log10(check.c[axis] / scan.best().c[axis]));
  return check;
}

std::string words_of_check(const SplitCheck& check, const Scan& scan) {
  ScanPoint point;
  point.c = check.c;
  const auto both = fmt::format("{} folds choose {}, {} folds {}", scan.folds_kind, c_words(scan, scan.best()),
                                choice_name(check.split, split_choices), c_words(scan, point));
  if (check.agrees()) return both + ": they agree within half a decade";
  return both +
         ": they disagree by more than half a decade. Random cells ask for what lies between the baselines that were measured, a "
         "dartboard and blocks for what lies beyond: make the image with both, and believe what they have in common";
}

std::string words_of_choice(Score score) {
  if (score == Score::folds) return "cross-validated";
  return score == Score::sure ? "by SURE" : "by GCV";
}

std::string diagnostic_words(const Scan& scan) {
  const auto nearest = scan.discrepancy(), corner = scan.l_curve_corner();
  if (!nearest || !corner) return {};
  const auto& point = scan.points[*nearest];
  return fmt::format(
      "for comparison, of the points tried: chi^2/2N of the fitted data is nearest 1 at {} ({:.4f}), which trusts the weights "
      "entirely; the corner of the L-curve is at {}, which leans to too smooth",
      c_words(scan, point), point.train(), c_words(scan, scan.points[*corner]));
}

std::vector<std::string> scan_warnings(const Scan& scan) {
  std::vector<std::string> warnings;
  for (const auto& name : scan.at_bound()) {
    warnings.push_back(fmt::format(
        "the lambda of {} that cross-validation chose is at the end of what it could reach: give --{} a range beyond it", name,
        option_of(name)));
  }
  if (scan.is_flat())
    warnings.emplace_back("the held-out data do not tell the lambdas apart: any of those in scan.csv fits them as well");
  if (scan.exhausted) {
    warnings.push_back(fmt::format("the search ended with its {} points, perhaps before the best: give more --search-points",
                                   scan.points.size()));
  }
  return warnings;
}

std::string scan_csv(const Scan& scan) {
  const auto table = scan.table();
  auto text = fmt::format("{}\n", fmt::join(table.names, ","));
  for (const auto& row : table.rows) text += fmt::format("{}\n", fmt::join(row, ","));
  return text;
}

}  // namespace mpol::cli
