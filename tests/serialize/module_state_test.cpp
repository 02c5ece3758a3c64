#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/serialize/module_state.h>
#include <mpol_cpp/train/trainer.h>

#include "random.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

GriddedNet net_of(std::int64_t npix, std::uint64_t seed, torch::Dtype dtype = torch::kFloat32) {
  const GridCoords coords(0.05, npix);
  return GriddedNet(GriddedNetOptions(coords).base_cube(normal({2, npix, npix}, dtype, seed)).dtype(dtype));
}

}  // namespace

TEST_CASE("a saved model gives the same image when it is loaded", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto saved = net_of(8, 1), loaded = net_of(8, 2);
  const auto* storage = loaded->base().data_ptr();
  save_model(folder / "model.safetensors", saved);
  load_model(folder / "model.safetensors", loaded, torch::kCPU);
  CHECK(at::equal(saved->base(), loaded->base()));
  CHECK(loaded->base().data_ptr() == storage);
  CHECK(loaded->base().requires_grad());
}

TEST_CASE("complex and index buffers of a module survive", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto dataset = [](std::uint64_t seed) {
    return GriddedDataset(GridCoords(0.05, 4), 1, torch::tensor({1, 5, 9}, torch::kInt64),
                          normal({3}, torch::kComplexDouble, seed), uniform({3}, torch::kFloat64, seed) + 0.1);
  };
  const auto saved = dataset(1), loaded = dataset(2);
  save_model(folder / "dataset.safetensors", saved);
  load_model(folder / "dataset.safetensors", loaded);
  CHECK(at::equal(saved->visibilities(), loaded->visibilities()));
  CHECK(at::equal(saved->weights(), loaded->weights()));
}

TEST_CASE("load_model takes the model out of a trainer's checkpoint", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "checkpoint.safetensors";
  const GridCoords coords(0.05, 8);
  const auto cells = torch::arange(0, 128, 3, torch::kInt64);
  const GriddedDataset dataset(coords, 2, cells, normal({cells.size(0)}, torch::kComplexDouble, 5),
                               uniform({cells.size(0)}, torch::kFloat64, 6) + 0.1);
  const auto trained = net_of(8, 1), loaded = net_of(8, 2);
  Trainer(trained, Objective(GriddedLikelihood(dataset)), TrainOptions().epochs(3).checkpoint(path)).fit();
  load_model(path, loaded);
  CHECK(at::equal(trained->base(), loaded->base()));
  const GriddedNet finer(GriddedNetOptions(GridCoords(0.04, 8)).nchan(2));
  CHECK_THROWS_WITH(load_model(path, finer), ContainsSubstring("cell_size 0.05") && ContainsSubstring("0.04"));
}

TEST_CASE("a state says what its axes are; one of other axes is refused, and one of before is of these", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const auto saved = net_of(8, 1), loaded = net_of(8, 2);
  save_model(path, saved);
  auto file = read_safetensors(path);
  CHECK(file.metadata.at("label.axes") == "channel,y,x");
  file.metadata["label.axes"] = "stokes,channel,y,x";
  write_safetensors(path, file.tensors, file.metadata);
  const auto before = loaded->base().detach().clone();
  CHECK_THROWS_WITH(load_model(path, loaded),
                    ContainsSubstring("axes stokes,channel,y,x") && ContainsSubstring("of channel,y,x"));
  CHECK(at::equal(loaded->base(), before));
  file.metadata.erase("label.axes");
  write_safetensors(path, file.tensors, file.metadata);
  load_model(path, loaded);
  CHECK(at::equal(saved->base(), loaded->base()));
}

TEST_CASE("a model of another shape, dtype or kind is refused by name and left as it was", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  save_model(path, net_of(8, 1));
  const auto larger = net_of(10, 2);
  const auto before = larger->base().detach().clone();
  CHECK_THROWS_WITH(load_model(path, larger), ContainsSubstring("npix 8") && ContainsSubstring("10"));
  CHECK(at::equal(larger->base(), before));
  const GriddedNet more(GriddedNetOptions(GridCoords(0.05, 8)).nchan(3));
  CHECK_THROWS_WITH(load_model(path, more),
                    ContainsSubstring("bcube.base_cube") && ContainsSubstring("[2, 8, 8]") && ContainsSubstring("[3, 8, 8]"));
  CHECK_THROWS_WITH(load_model(path, net_of(8, 1, torch::kFloat64)), ContainsSubstring("Float") && ContainsSubstring("Double"));
  write_safetensors(path, {{"other", torch::zeros({1})}});
  CHECK_THROWS_WITH(load_model(path, net_of(8, 1)), ContainsSubstring("bcube.base_cube"));
  write_safetensors(path, {{"other", torch::zeros({1})}, {"bcube.base_cube", torch::zeros({2, 8, 8})}});
  CHECK_THROWS_WITH(load_model(path, net_of(8, 1)), ContainsSubstring("other"));
}
