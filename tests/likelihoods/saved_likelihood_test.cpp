// Likelihoods that are saved and loaded: by save_model and load_model, and by LibTorch's own archives.
#include "catch.h"

#include <functional>
#include <memory>
#include <string>

#include <torch/serialize.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/likelihoods/block_likelihood.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/serialize/module_state.h>

#include "compare.h"
#include "random.h"
#include "temporary_folder.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords saved_grid(0.05, 16);

/// Other data and weights on the same baselines.
Visibilities brighter(const Visibilities& visibilities) {
  return {visibilities.baselines(), visibilities.data() * 3, visibilities.weights() * 2};
}

std::shared_ptr<Likelihood> saved_likelihood(const std::string& name, const Visibilities& data) {
  const auto channels = ChannelMap::cube(2);
  if (name == "exact") return ExactLikelihood(saved_grid, data, channels).ptr();
  if (name == "loose") return LooseLikelihood(saved_grid, data, channels).ptr();
  if (name == "student") return NoiseLikelihood(saved_grid, data, channels, NoiseModel::student(4)).ptr();
  if (name == "blocks") return BlockLikelihood(saved_grid, std::vector{DataBlock(data, channels).fit_shift()}).ptr();
  // Cells of the baselines' grid: the same for both sets of data.
  const auto cells = torch::arange(0, 2 * 16 * 16, 3, torch::kInt64);
  auto dataset = GriddedDataset(saved_grid, 2, cells, data.data().flatten().slice(0, 0, cells.numel()).clone(),
                                data.weights().flatten().slice(0, 0, cells.numel()).clone());
  dataset->set_nvis(static_cast<std::int64_t>(data.weights()[0][0].item<double>() * 1000));
  return GriddedLikelihood(dataset).ptr();
}

/// How a state goes from one module into another.
using Transfer = std::function<void(torch::nn::Module& from, torch::nn::Module& to)>;

Transfer transfer(const std::string& way, const TemporaryFolder& folder) {
  const auto path = folder / "state";
  if (way == "load_model") {
    return [path](torch::nn::Module& from, torch::nn::Module& to) { save_model(path, from), load_model(path, to); };
  }
  return [path](torch::nn::Module& from, torch::nn::Module& to) {
    torch::serialize::OutputArchive out;
    from.save(out);
    out.save_to(path.string());
    torch::serialize::InputArchive in;
    in.load_from(path.string());
    to.load(in);
  };
}

struct WholeEvaluation {
  Tensor value, gradient, by_autograd;
};

WholeEvaluation whole_evaluation(Likelihood& likelihood, const Tensor& sky) {
  WholeEvaluation found;
  found.gradient = torch::empty_like(sky);
  found.value = likelihood.value_and_gradient(sky, found.gradient, Accumulate::overwrite);
  found.by_autograd = gradient_of([&](const Tensor& x) { return likelihood.chi_squared(x); }, sky);
  return found;
}

}  // namespace

TEMPLATE_TEST_CASE("a likelihood that was loaded is the one that was saved, also after it was used", "[losses][serialize][quick]",
                   float, double) {
  const std::string name = GENERATE("gridded", "exact", "loose", "student", "blocks");
  const std::string way = GENERATE("load_model", "archive");
  CAPTURE(name, way);
  const TemporaryFolder folder;
  const auto data = random_visibilities(saved_grid, 2, 7);
  const auto sky = uniform({2, 16, 16}, torch::kFloat64, 3).to(dtype_of<TestType>());
  const auto saved = saved_likelihood(name, data), loaded = saved_likelihood(name, brighter(data));
  const auto before = whole_evaluation(*loaded, sky);  // what is kept from one evaluation to the next must be forgotten
  transfer(way, folder)(saved->as_module(), loaded->as_module());
  const auto expected = whole_evaluation(*saved, sky), found = whole_evaluation(*loaded, sky);
  CHECK(relative_error(before.value, expected.value) > 0.1);
  CHECK(same(found.value, expected.value));
  CHECK(same(found.gradient, expected.gradient));
  CHECK(same(found.by_autograd, expected.by_autograd));
  CHECK(loaded->normalizer() == saved->normalizer());
  CHECK(loaded->samples() == saved->samples());
  CHECK(loaded->visibilities_count() == saved->visibilities_count());
}

TEMPLATE_TEST_CASE("an exact likelihood is loaded into one without data", "[losses][exact][serialize][quick]", float, double) {
  const std::string way = GENERATE("load_model", "archive");
  const TemporaryFolder folder;
  const auto saved = saved_likelihood("exact", random_visibilities(saved_grid, 2, 7));
  auto loaded = ExactLikelihood(NormalOperator(saved_grid, 2));
  CHECK(loaded->normalizer() == 0);
  transfer(way, folder)(saved->as_module(), *loaded);
  const auto sky = uniform({3, 2, 16, 16}, torch::kFloat64, 3).to(dtype_of<TestType>());
  CHECK(same(whole_evaluation(*loaded, sky).value, whole_evaluation(*saved, sky).value));
  CHECK(same(whole_evaluation(*loaded, sky).gradient, whole_evaluation(*saved, sky).gradient));
  CHECK(loaded->normalizer() == saved->normalizer());
  CHECK(loaded->samples() == 1600);
}

TEST_CASE("states of another grid or of other baselines are refused and change nothing", "[losses][serialize][quick]") {
  const std::string way = GENERATE("load_model", "archive");
  CAPTURE(way);
  const TemporaryFolder folder;
  const auto move = transfer(way, folder);
  const auto data = random_visibilities(saved_grid, 2, 7), elsewhere = random_visibilities(saved_grid, 2, 8);
  for (const auto* name : {"loose", "student", "blocks"}) {
    CAPTURE(name);
    const auto saved = saved_likelihood(name, data), loaded = saved_likelihood(name, elsewhere);
    const auto held = loaded->as_module().buffers().front().clone();
    CHECK_THROWS_AS(move(saved->as_module(), loaded->as_module()), FileError);
    CHECK_THROWS_WITH(move(saved->as_module(), loaded->as_module()), ContainsSubstring("baselines"));
    CHECK(same(loaded->as_module().buffers().front(), held));
  }
  const GridCoords finer(0.04, 16);
  const auto refuses = [&](torch::nn::Module& from, torch::nn::Module& to) {
    CHECK_THROWS_WITH(move(from, to), ContainsSubstring("cell_size") && ContainsSubstring("0.05") && ContainsSubstring("0.04"));
  };
  refuses(*ExactLikelihood(NormalOperator(saved_grid, 2)), *ExactLikelihood(NormalOperator(finer, 2)));
  refuses(*GriddedNet(saved_grid), *GriddedNet(finer));
  refuses(*random_dataset(saved_grid, 2, 1), *random_dataset(finer, 2, 1));
  auto larger = GriddedNet(GriddedNetOptions(saved_grid).nchan(3));
  CHECK_THROWS_AS(move(*GriddedNet(saved_grid), *larger), FileError);
}

TEST_CASE("a model within a module of the user's own keeps its grid in the file", "[losses][serialize][quick]") {
  struct Parent : torch::nn::Module {
    explicit Parent(const GridCoords& coords) { net = register_module("net", GriddedNet(coords)); }
    GriddedNet net{nullptr};
  };
  const std::string way = GENERATE("load_model", "archive");
  const TemporaryFolder folder;
  const auto move = transfer(way, folder);
  Parent saved(saved_grid), alike(saved_grid), finer(GridCoords(0.04, 16));
  CHECK_NOTHROW(move(saved, alike));
  CHECK_THROWS_WITH(move(saved, finer), ContainsSubstring("cell_size"));
}

TEST_CASE("an exact likelihood follows data that are changed in place", "[losses][exact][quick]") {
  const auto data = random_visibilities(saved_grid, 2, 7);
  const auto likelihood = saved_likelihood("exact", data);
  const auto sky = uniform({2, 16, 16}, torch::kFloat32, 3);
  const auto before = whole_evaluation(*likelihood, sky);
  {
    const torch::NoGradGuard no_grad;
    for (auto& buffer : likelihood->as_module().named_buffers()) {
      if (buffer.value().is_floating_point()) buffer.value().mul_(2);
    }
  }
  CHECK(relative_error(whole_evaluation(*likelihood, sky).value, 2 * before.value) < 1e-6);
  CHECK(relative_error(whole_evaluation(*likelihood, sky).gradient, 2 * before.gradient) < 1e-5);
}

TEST_CASE("a gradient that is no tensor like the image is one clear error", "[losses][quick]") {
  const std::string name = GENERATE("gridded", "exact", "loose", "student", "blocks");
  CAPTURE(name);
  const auto likelihood = saved_likelihood(name, random_visibilities(saved_grid, 2, 7));
  const auto sky = uniform({2, 16, 16}, torch::kFloat64, 3);
  Tensor undefined;
  CHECK_THROWS_AS(likelihood->value_and_gradient(sky, undefined, Accumulate::overwrite), ShapeError);
  for (auto wrong : {torch::empty({2, 16, 15}, torch::kFloat64), torch::empty({2, 16, 16}, torch::kFloat32)}) {
    CHECK_THROWS_WITH(likelihood->value_and_gradient(sky, wrong, Accumulate::add), ContainsSubstring("gradient"));
  }
}
