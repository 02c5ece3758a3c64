#include "catch.h"

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/optimizer.h>

#include <mpol_cpp/analysis/dirty_products.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/crossval/cross_validator.h>
#include <mpol_cpp/distributed/channel_neighbors.h>
#include <mpol_cpp/distributed/store_communicator.h>
#include <mpol_cpp/fourier/operator_of_ranks.h>
#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/train/checkpoint.h>
#include <mpol_cpp/train/optimizers/channel_state.h>

#include "temporary_folder.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords grid(0.05, 16);

double difference(const Tensor& a, const Tensor& b) {
  return ((a.to(torch::kFloat64) - b.to(torch::kFloat64)).abs().max() / b.abs().max().to(torch::kFloat64)).item<double>();
}

std::vector<std::int64_t> indices_of(const Share& share) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(share.size()));
  std::iota(indices.begin(), indices.end(), share.begin);
  return indices;
}

/// A point of 1 Jy in noise, on the same baselines in all channels: what transforms are planned for is then the same for some of
/// the channels as for all, which it is to 1e-12 otherwise.
Visibilities source_in_noise(std::int64_t nchan) {
  const auto noise = random_visibilities(grid, nchan, 7);
  const auto [u, v] = noise.baselines().channel(0);
  return {Baselines::in_lambda(u, v), noise.data() + 1.0, noise.weights()};
}

/// A cube's fit, of all channels or of a share.
struct CubeFit {
  torch::Dtype dtype = torch::kFloat64;
  OptimizerKind optimizer = OptimizerKind::adam;
  std::int64_t nchan = 5, epochs = 60;
  std::vector<Term> terms = {terms::sparsity(1e-5), terms::tv_image(1e-5)};
  Visibilities visibilities = source_in_noise(nchan);
  Tensor base = normal({nchan, grid.npix(), grid.npix()}, torch::kFloat64, 3).abs();

  struct Fitted {
    TrainResult result;
    Tensor pixels;
  };

  Fitted run(const Share& share, double normalizer, TrainOptions options) const {
    const auto own = visibilities.select_channels(indices_of(share));
    const ExactLikelihood likelihood(grid, own, ChannelMap::cube(share.size()));
    const auto objective = Objective(likelihood, terms).divided_by(normalizer > 0 ? normalizer : likelihood->normalizer());
    const auto start = base.narrow(0, share.begin, share.size()).clone();
    const GriddedNet model(GriddedNetOptions(grid).base_cube(start).dtype(dtype).pixel_mapping(
        is_proximal(optimizer) ? nonnegative_mapping() : softplus_mapping()));
    auto result = Trainer(model, objective, options.optimizer(optimizer).epochs(epochs)).fit();
    return {std::move(result), model->base().detach().clone()};
  }
  double normalizer() const { return ExactLikelihood(grid, visibilities, ChannelMap::cube(nchan))->normalizer(); }
};

/// Fits this rank's share of the channels, and compares with the fit of all. @throws DataError where they differ
TrainResult check_share(const CubeFit& fit, double normalizer, const CubeFit::Fitted& one, double tolerance,
                        Communicator& ranks) {
  // Ranks are handed on as shared; these live as long as the threads.
  const std::shared_ptr<Communicator> shared(&ranks, [](Communicator*) {});
  auto own = fit.run(share_of(fit.nchan, ranks.rank(), ranks.size()), normalizer, TrainOptions().ranks(shared));
  const auto pixels = ranks.gather(own.pixels.contiguous());
  if (pixels.defined() && !(difference(pixels, one.pixels) < tolerance))
    throw DataError(fmt::format("pixels of {} differ by {:g}", to_string(fit.optimizer), difference(pixels, one.pixels)));
  if (own.result.epochs != one.result.epochs) throw DataError("another number of epochs");
  for (std::size_t column = 0; column < one.result.columns.size(); ++column) {
    const double mine = own.result.loss.values[column], wanted = one.result.loss.values[column];
    if (!(std::abs(mine - wanted) <= tolerance * std::abs(wanted)))
      throw DataError(fmt::format("{} is {} instead of {}", one.result.columns[column], mine, wanted));
  }
  return std::move(own.result);
}

}  // namespace

TEST_CASE("the operator of ranks is that of all samples", "[distributed][quick]") {
  const auto visibilities = random_visibilities(grid, 2, 5);
  const auto nvis = GENERATE(std::int64_t{800}, std::int64_t{2});  // of three ranks, uneven; one with nothing
  const auto samples = visibilities.select(at::arange(nvis, torch::kInt64));
  const auto whole = NormalOperator::of(grid, samples, ChannelMap::cube(2));
  run_as_threads(3, [&](Communicator& ranks) {
    const auto own = operator_of_ranks(grid, samples, ChannelMap::cube(2), ranks);
    const bool same = difference(own.kernel(), whole.kernel()) < 1e-11 && difference(own.dirty(), whole.dirty()) < 1e-11 &&
                      difference(own.constant(), whole.constant()) < 1e-13 && own.cell_counts().equal(whole.cell_counts()) &&
                      own.nvis() == whole.nvis() && own.occupied_cells() == whole.occupied_cells();
    if (!same) throw DataError("another operator");
  });
  const auto alone = single_rank();
  CHECK(operator_of_ranks(grid, samples, ChannelMap::cube(2), *alone).kernel().equal(whole.kernel()));
}

TEST_CASE("dirty images and sums that ranks make of their channels are those of one rank", "[distributed]") {
  const auto imaging = GENERATE(Imaging::exact, Imaging::cells);
  constexpr std::int64_t nchan = 5;
  const auto visibilities = random_visibilities(grid, nchan, 7);  // of which each channel has u, v of its own
  const auto sky = uniform({nchan, grid.npix(), grid.npix()}, torch::kFloat64, 4);
  const auto products_of = [&](const Share& share, const auto& make) {
    const auto own = visibilities.select_channels(indices_of(share));
    const auto channels = ChannelMap::cube(share.size());
    const auto cells =
        DataAverager(grid, own, DataAveragerOptions().channel_map(channels).scatter_check(ScatterCheck::off)).to_dataset();
    return make(FitData{own, channels, cells, imaging}, sky.narrow(0, share.begin, share.size()));
  };
  ProductFrame frame;
  const auto whole = products_of({0, nchan}, [&](const FitData& data, const Tensor& model) {
    frame = product_frame(data, summarize_uv(data.visibilities.baselines()));
    return dirty_products(data, model);
  });
  REQUIRE(whole.residual.size(0) == nchan);
  REQUIRE(whole.data.q.size() > 3);  // something to compare
  run_as_threads(3, [&](Communicator& ranks) {
    const auto all = products_of(share_of(nchan, ranks.rank(), ranks.size()), [&](const FitData& data, const Tensor& model) {
      return dirty_products(data, model, frame, ranks);
    });
    if (all.has_value() != ranks.is_first()) throw DataError("products on another rank than the first");
    if (!all) return;
    const auto& [statistics, parts, histogram, wide, slope, lengths] = all->remainder;
    const auto& wanted = whole.remainder;
    const bool same = all->dirty.equal(whole.dirty) && all->residual.equal(whole.residual) && all->beams == whole.beams &&
                      all->noise == whole.noise && all->data.q.size() == whole.data.q.size() && parts.empty() && !slope &&
                      statistics.samples == wanted.statistics.samples &&
                      statistics.sigma_factor == wanted.statistics.sigma_factor &&
                      histogram.density.equal(wanted.histogram.density) && wide.coords == wanted.wide.coords &&
                      difference(wide.image, wanted.wide.image) < 1e-12 && std::abs(wide.noise / wanted.wide.noise - 1) < 1e-12 &&
                      std::abs(statistics.standard_deviation / wanted.statistics.standard_deviation - 1) < 1e-12;
    if (!same) throw DataError("other products");
    // Of data the power of noise is subtracted, which leaves little: powers are compared.
    const auto check = [](const char* what, double value, double expected, double scale) {
      if (!(std::abs(value - expected) <= 1e-12 * scale))
        throw DataError(fmt::format("{}: {} instead of {}", what, value, expected));
    };
    const bool has_lengths = imaging == Imaging::exact;  // of samples alone
    if (lengths.has_value() != has_lengths || wanted.lengths.has_value() != has_lengths)
      throw DataError("another slope with baseline length");
    if (has_lengths) {
      check("slope", lengths->slope, wanted.lengths->slope, 1);
      check("its error", lengths->error, wanted.lengths->error, 1);
      check("chi^2", lengths->chi_squared, wanted.lengths->chi_squared, wanted.lengths->chi_squared);
    }
    for (std::size_t ring = 0; ring < whole.data.q.size(); ++ring) {
      const double of_data = whole.data.amplitude[ring], of_model = whole.model.amplitude[ring];
      check("q", all->data.q[ring], whole.data.q[ring], whole.data.q[ring]);
      check("power of the data", std::pow(all->data.amplitude[ring], 2), of_data * of_data, of_data * of_data + 1);
      check("power of the model", std::pow(all->model.amplitude[ring], 2), of_model * of_model, of_model * of_model);
    }
  });
}

TEST_CASE("dirty images and sums that ranks make of their samples are those of one rank", "[distributed]") {
  constexpr std::int64_t nchan = 3;
  auto visibilities = random_visibilities(grid, nchan, 8);
  visibilities.set_frequencies(at::tensor({1.0e11, 1.5e11, 2.2e11}, torch::kFloat64));
  const auto channels = GENERATE(ChannelMap::cube(nchan), ChannelMap::continuum(nchan));
  const auto sky = uniform({channels.nchan(), grid.npix(), grid.npix()}, torch::kFloat64, 4);
  const auto averages =
      DataAverager(grid, visibilities, DataAveragerOptions().channel_map(channels).scatter_check(ScatterCheck::off)).to_dataset();
  const FitData data{visibilities, channels, averages, Imaging::exact};
  const auto frame = product_frame(data, summarize_uv(visibilities.baselines()));
  const auto whole = dirty_products(data, sky, frame);
  run_as_threads(3, [&](Communicator& ranks) {
    const auto share = share_of(visibilities.nvis(), ranks.rank(), ranks.size());
    const auto own = visibilities.select(at::arange(share.begin, share.end, torch::kInt64));
    const auto all = dirty_products_of_samples({own, channels, averages, Imaging::exact}, sky, frame, ranks);
    if (all.has_value() != ranks.is_first()) throw DataError("products on another rank than the first");
    if (!all) return;
    const auto check = [](const char* what, double value, double expected, double scale, double tolerance = 1e-12) {
      if (!(std::abs(value - expected) <= tolerance * std::abs(scale)))
        throw DataError(fmt::format("{}: {} instead of {}", what, value, expected));
    };
    check("dirty image", difference(all->dirty, whole.dirty), 0, 1);
    check("residual", difference(all->residual, whole.residual), 0, 1);
    check("wide image", difference(all->remainder.wide.image, whole.remainder.wide.image), 0, 1);
    if (all->noise != whole.noise) throw DataError("another noise");
    if (all->beams.size() != whole.beams.size()) throw DataError("other beams");
    for (std::size_t i = 0; i < whole.beams.size(); ++i) check("beam", all->beams[i].major, whole.beams[i].major, 1, 1e-9);
    const auto& own_statistics = all->remainder.statistics;
    const auto& statistics = whole.remainder.statistics;
    if (own_statistics.samples != nchan * visibilities.nvis()) throw DataError("another number of samples");
    check("scatter", own_statistics.standard_deviation, statistics.standard_deviation, 1);
    check("share beyond four sigma", own_statistics.beyond_four, statistics.beyond_four, 1);
    const auto &lengths = all->remainder.lengths, &expected = whole.remainder.lengths;
    if (!lengths || !expected) throw DataError("no slope with baseline length");
    check("slope", lengths->slope, expected->slope, 1, 1e-10);
    check("its error", lengths->error, expected->error, 1, 1e-10);
    check("chi^2", lengths->chi_squared, expected->chi_squared, expected->chi_squared);
    check("numbers", lengths->samples, expected->samples, 1);
    const auto &slope = all->remainder.slope, &index = whole.remainder.slope;
    if (slope.has_value() != index.has_value()) throw DataError("another spectral slope");
    if (slope) {
      check("spectral index", slope->index, index->index, 1, 1e-9);
      check("error of the index", slope->error, index->error, index->error, 1e-9);
    }
    for (std::size_t ring = 0; ring < whole.data.q.size(); ++ring)
      check("power", std::pow(all->model.amplitude[ring], 2), std::pow(whole.model.amplitude[ring], 2), 1, 1e-9);
  });
  const auto alone = single_rank();
  CHECK(dirty_products_of_samples(data, sky, frame, *alone)->residual.equal(whole.residual));
}

TEMPLATE_TEST_CASE("ranks that fit channels go where one rank goes", "[distributed]", float, double) {
  CubeFit fit;
  fit.dtype = c10::CppTypeToScalarType<TestType>::value;
  fit.optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::pogm, OptimizerKind::fista);
  if (is_proximal(fit.optimizer)) fit.epochs = 25;  // closer to the optimum rounding decides whether F rises, and who begins anew
  const double tolerance = fit.dtype == torch::kFloat64 ? 1e-11 : 2e-5;
  const auto one = fit.run({0, fit.nchan}, 0, {});
  const auto normalizer = fit.normalizer();
  run_as_threads(3, [&](Communicator& ranks) { check_share(fit, normalizer, one, tolerance, ranks); });
}

TEST_CASE("a rank sees the channels of its neighbors, over ranks of one channel", "[distributed][quick]") {
  const std::int64_t nchan = 5;
  const auto cube = normal({2, nchan, 4, 4}, torch::kFloat32, 1);
  const auto count = GENERATE(2, 3, 5);
  run_as_threads(count, [&](Communicator& ranks) {
    const ChannelNeighbors neighbors(std::shared_ptr<Communicator>(&ranks, [](Communicator*) {}));
    const auto share = share_of(nchan, ranks.rank(), ranks.size());
    for (const std::int64_t reach : {1, 2, 4}) {
      const auto found = neighbors.with_neighbors(cube.narrow(1, share.begin, share.size()), reach);
      const auto begin = std::max<std::int64_t>(share.begin - reach, 0), end = std::min(share.end + reach, nchan);
      const bool right = found.before == share.begin - begin && found.after == end - share.end &&
                         found.cube.equal(cube.narrow(1, begin, end - begin));
      if (!right) throw DataError(fmt::format("rank {} sees other channels at reach {}", ranks.rank(), reach));
    }
    const auto rank = static_cast<double>(ranks.rank()), last = static_cast<double>(ranks.size() - 1);
    auto sums = torch::full({3}, rank, torch::kFloat32);
    neighbors.sum(sums);
    const bool right = neighbors.channels_before(share.size()) == share.begin &&
                       neighbors.largest({rank, -rank}) == std::vector<double>{last, 0} &&
                       sums.equal(torch::full({3}, last * (last + 1) / 2, torch::kFloat32));
    if (!right) throw DataError("other sums");
  });
}

TEST_CASE("terms that join channels of several ranks add up to those of the cube, with their slopes", "[distributed][quick]") {
  const std::int64_t nchan = 5;
  const auto cube = normal({2, nchan, 6, 6}, torch::kFloat64, 1);
  const auto count = GENERATE(2, 3, 5);
  for (const auto& term : {terms::tv_channel(1, 1e-4), terms::group_sparsity(1), terms::spectral_smoothness(1), terms::tsv(1)}) {
    INFO(term.name());
    auto leaf = cube.clone().set_requires_grad(true);
    const auto value = term.evaluate(ModelOutput(grid, {}, leaf));
    const auto slopes = torch::autograd::grad({value.sum()}, {leaf})[0];
    run_as_threads(count, [&](Communicator& ranks) {
      const auto neighbors = std::make_shared<ChannelNeighbors>(std::shared_ptr<Communicator>(&ranks, [](Communicator*) {}));
      const auto share = share_of(nchan, ranks.rank(), ranks.size());
      const auto part = [&](const Tensor& all) { return all.narrow(1, share.begin, share.size()).contiguous(); };
      const auto own = term.over(neighbors);
      auto pixels = part(cube).set_requires_grad(true);
      auto found = own.evaluate(ModelOutput(grid, {}, pixels));
      const auto found_slopes = torch::autograd::grad({found.sum()}, {pixels})[0];
      auto sum = found.detach().clone(), again = own.evaluate(ModelOutput(grid, {}, part(cube)));
      neighbors->sum(sum);
      neighbors->sum(again);
      const bool right = difference(sum, value.detach()) < 1e-13 && difference(again, value.detach()) < 1e-13 &&
                         (found_slopes - part(slopes)).abs().max().item<double>() < 1e-13 * slopes.abs().max().item<double>();
      if (!right) throw DataError(fmt::format("{} of rank {} differs", term.name(), ranks.rank()));
      const std::shared_ptr<Communicator> shared(&ranks, [](Communicator*) {});
      const auto objective = Objective(ExactLikelihood(grid, source_in_noise(1), ChannelMap::cube(1)), {term}).over(shared);
      if ((objective.neighbors() != nullptr) != term.joins_channels() ||
          objective.over(shared).neighbors() != objective.neighbors())
        throw DataError(fmt::format("an objective of {} is not over ranks, or twice", term.name()));
    });
  }
}

TEMPLATE_TEST_CASE("ranks whose channels are joined go where one rank goes", "[distributed]", float, double) {
  CubeFit fit;
  fit.dtype = c10::CppTypeToScalarType<TestType>::value;
  fit.optimizer = GENERATE(OptimizerKind::pogm, OptimizerKind::fista, OptimizerKind::adam);
  const auto joining = GENERATE(0, 1, 2, 3, 4);
  const std::vector<Term> joining_terms = {terms::tv_channel(2e-5), terms::group_sparsity(2e-5),
                                           terms::spectral_smoothness(1e-4)};
  if (joining < 3) fit.terms.push_back(joining_terms[static_cast<std::size_t>(joining)]);
  else fit.terms.insert(fit.terms.end(), joining_terms.begin(), joining_terms.end());
  // The map with wavelets is one of LibTorch's operations; adam follows the signs of their coefficients, which are rounding.
  if (joining == 4 && is_proximal(fit.optimizer)) fit.terms.push_back(terms::wavelets(1e-5));
  if (is_proximal(fit.optimizer)) fit.epochs = 20;  // closer to the optimum rounding decides whether F rises, and who begins anew
  CAPTURE(to_string(fit.optimizer), joining);
  const double tolerance = fit.dtype == torch::kFloat64 ? 1e-11 : 1e-4;
  const auto one = fit.run({0, fit.nchan}, 0, TrainOptions().step(StepKind::eager));
  const auto normalizer = fit.normalizer();
  const auto count = GENERATE(2, 5);
  run_as_threads(count, [&](Communicator& ranks) {
    const auto own = check_share(fit, normalizer, one, tolerance, ranks);
    if (own.gap.has_value() != one.result.gap.has_value()) throw DataError("a gap is there or not");
    if (one.result.gap && !(std::abs(*own.gap / *one.result.gap - 1) < (fit.dtype == torch::kFloat64 ? 1e-8 : 0.1)))
      throw DataError(fmt::format("the gap is {} instead of {}", *own.gap, *one.result.gap));
  });
}

TEST_CASE("what ranks of a cube cannot do is refused", "[distributed][quick]") {
  run_as_threads(2, [](Communicator& ranks) {
    const std::shared_ptr<Communicator> shared(&ranks, [](Communicator*) {});
    const OwnOptimizer own{"none", [](const std::vector<Tensor>&) { return nullptr; }};
    const auto refused = [](const TrainOptions& options) {
      try {
        options.validate();
      } catch (const ValueError&) {
        return true;
      }
      return false;
    };
    const bool right = refused(TrainOptions().ranks(shared).optimizer(OptimizerKind::lbfgs)) &&
                       refused(TrainOptions().ranks(shared).optimizer(OptimizerKind::admm)) &&
                       refused(TrainOptions().ranks(shared).optimizer(own)) && !refused(TrainOptions().optimizer(own)) &&
                       refused(TrainOptions().ranks(shared).stop_relative(1e-3).stop_scope(StopScope::each)) &&
                       !refused(TrainOptions().ranks(shared).stop_relative(1e-3));
    if (!right) throw DataError("taken or refused wrongly");
  });
  const ExactLikelihood likelihood(grid, random_visibilities(grid, 1, 7), ChannelMap::cube(1));
  CHECK_THROWS_AS(Objective(likelihood).divided_by(0), ValueError);
  CHECK(Objective(likelihood).divided_by(3).normalizer() == 3);
}

TEST_CASE("the state of ranks with channels is that of one rank, and comes apart again", "[distributed][quick]") {
  const std::int64_t nchan = 5, npix = 4;
  const auto images = normal({nchan, npix, npix}, torch::kFloat64, 1),
             duals = normal({2, 1, nchan, npix, npix}, torch::kFloat32, 2);
  const auto curvatures = normal({nchan}, torch::kFloat64, 3), moves = normal({7}, torch::kFloat64, 4),
             falls = normal({6, 1, nchan}, torch::kFloat64, 5);
  run_as_threads(3, [&](Communicator& ranks) {
    const auto share = share_of(nchan, ranks.rank(), ranks.size());
    const mpol::detail::ChannelState state(ranks, share.size(), npix);
    const NamedTensors own = {{"model.cube", images.narrow(0, share.begin, share.size())},
                              {"optimizer.dual", duals.narrow(2, share.begin, share.size())},
                              {"optimizer.curvatures", curvatures.narrow(0, share.begin, share.size())},
                              {"optimizer.decreases_of_channels", falls.narrow(2, share.begin, share.size())},
                              {"optimizer.losses", at::arange(3, torch::kFloat64) + static_cast<double>(ranks.rank())},
                              {"random", moves}};
    auto all = state.gather(own);
    if (all.empty() == ranks.is_first()) throw DataError("who has the state");
    if (ranks.is_first()) {
      const bool right = all.at("model.cube").equal(images) && all.at("optimizer.dual").equal(duals) &&
                         all.at("optimizer.curvatures").equal(curvatures) && all.at("random").equal(moves) &&
                         all.at("optimizer.decreases_of_channels").equal(falls) &&
                         all.at("optimizer.losses").equal(at::arange(3, torch::kFloat64) * 3 + 3);
      if (!right) throw DataError("another state");
    }
    const NamedTensors whole = {{"model.cube", images},
                                {"optimizer.dual", duals},
                                {"optimizer.curvatures", curvatures},
                                {"optimizer.decreases_of_channels", falls},
                                {"random", moves}};
    for (const auto& [name, tensor] : state.part(whole)) {
      if (!tensor.equal(own.at(name))) throw DataError("another part: " + name);
    }
    const auto sums = state.part({{"optimizer.losses", moves}}).at("optimizer.losses");
    if (!sums.equal(ranks.is_first() ? moves : at::zeros_like(moves))) throw DataError("sums are not the first rank's alone");
  });
}

TEST_CASE("checkpoints of ranks are gone on from by other numbers of ranks", "[distributed]") {
  CubeFit fit;
  fit.optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::pogm);
  fit.epochs = 30;
  const TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint.safetensors";
  const auto normalizer = fit.normalizer();
  const auto straight = fit.run({0, fit.nchan}, 0, {});
  const auto part = [&](std::int64_t size, std::int64_t epochs, bool resume) {
    run_as_threads(size, [&](Communicator& ranks) {
      const std::shared_ptr<Communicator> shared(&ranks, [](Communicator*) {});
      auto own = fit;
      own.epochs = epochs;
      own.run(share_of(fit.nchan, ranks.rank(), ranks.size()), normalizer,
              TrainOptions().ranks(shared).checkpoint(path).checkpoint_interval(7).resume(resume));
    });
  };
  part(3, 10, false);
  part(2, 20, true);
  const auto end = fit.run({0, fit.nchan}, 0, TrainOptions().checkpoint(path).resume(true));
  CHECK(end.result.resumed_from == 20);
  CHECK(difference(end.pixels, straight.pixels) < 1e-11);
}

TEST_CASE("ranks share the folds of a cross-validation", "[distributed]") {
  const auto visibilities = random_visibilities(grid, 1, 11);
  const auto folds = Folds::random_cells(grid, visibilities, FoldOptions().folds(3));
  const std::vector<SearchAxis> axes = {{"sparsity", 1e-3, 1, 0.01, 30, {}}};
  const FoldModel model = [](const FoldData& fold) -> std::shared_ptr<ImageModel> {
    const auto start = auto_start(fold.train_cells);
    return GriddedNet(GriddedNetOptions(grid).base_cube(start).dtype(torch::kFloat64).pixel_mapping(nonnegative_mapping())).ptr();
  };
  const auto scan_with = [&](const CrossValidatorOptions& options) {
    return CrossValidator(exact_fold_data(grid, visibilities, folds), model, {terms::sparsity(1e-3)}, axes,
                          CrossValidatorOptions(options).search(Search::compass(0.5, 5)))
        .run();
  };
  const auto one = scan_with({});
  const auto size = GENERATE(2, 4);  // uneven; more than there are folds
  run_as_threads(size, [&](Communicator& ranks) {
    const std::shared_ptr<Communicator> shared(&ranks, [](Communicator*) {});
    const auto own = scan_with(CrossValidatorOptions().ranks(shared));
    if (own.table().rows != one.table().rows || own.chosen != one.chosen || own.fits != one.fits) throw DataError("another scan");
  });
}
