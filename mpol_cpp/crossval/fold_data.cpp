#include <mpol_cpp/crossval/fold_data.h>

#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>

namespace mpol {
namespace {

void check_same_samples(const Visibilities& visibilities, const Folds& folds) {
  if (folds.of_sample().numel() == visibilities.nvis()) return;
  throw ShapeError(fmt::format("the folds are of {} samples and the data of {}: make the folds of these data",
                               folds.of_sample().numel(), visibilities.nvis()));
}

GriddedDataset averages(const GridCoords& coords, const Visibilities& visibilities) {
  return DataAverager(coords, visibilities, DataAveragerOptions().scatter_check(ScatterCheck::off)).to_dataset();
}

}  // namespace

std::vector<FoldData> fold_data(const GridCoords& coords, const Visibilities& visibilities, const Folds& folds,
                                const LikelihoodMaker& make) {
  check_same_samples(visibilities, folds);
  std::vector<FoldData> data;
  for (std::int64_t fold = 0; fold < folds.size(); ++fold) {
    const auto train = visibilities.select(folds.train_samples(fold)), test = visibilities.select(folds.test_samples(fold));
    FoldData own{.train = {}, .test = {}, .train_cells = averages(coords, train), .test_cells = averages(coords, test)};
    own.train = make(train, own.train_cells);
    own.test = make(test, own.test_cells);
    data.push_back(std::move(own));
  }
  return data;
}

std::vector<FoldData> exact_fold_data(const GridCoords& coords, const Visibilities& visibilities, const Folds& folds) {
  check_same_samples(visibilities, folds);
  const auto channels = ChannelMap::cube(visibilities.nchan());
  auto always = (folds.of_sample() < 0).nonzero().squeeze(1);
  NormalOperator all(coords, visibilities.nchan());
  if (always.numel() > 0) all.add(visibilities.select(always), channels);
  std::vector<NormalOperator> tests;
  std::vector<FoldData> data;
  for (std::int64_t fold = 0; fold < folds.size(); ++fold) {
    const auto test = visibilities.select(folds.test_samples(fold));
    tests.push_back(NormalOperator::of(coords, test, channels));
    all += tests.back();
    data.push_back({nullptr, nullptr, averages(coords, visibilities.select(folds.train_samples(fold))), averages(coords, test)});
  }
  for (std::size_t fold = 0; fold < data.size(); ++fold) {
    data[fold].train = ExactLikelihood(all - tests[fold]).ptr();
    data[fold].test = ExactLikelihood(std::move(tests[fold])).ptr();
  }
  return data;
}

}  // namespace mpol
