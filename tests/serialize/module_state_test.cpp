#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/serialize/module_state.h>

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

TEST_CASE("a model of another shape, dtype or kind is refused by name and left as it was", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  save_model(path, net_of(8, 1));
  const auto larger = net_of(10, 2);
  const auto before = larger->base().detach().clone();
  CHECK_THROWS_WITH(load_model(path, larger),
                    ContainsSubstring("bcube.base_cube") && ContainsSubstring("[2, 8, 8]") && ContainsSubstring("[2, 10, 10]"));
  CHECK(at::equal(larger->base(), before));
  CHECK_THROWS_WITH(load_model(path, net_of(8, 1, torch::kFloat64)), ContainsSubstring("Float") && ContainsSubstring("Double"));
  write_safetensors(path, {{"other", torch::zeros({1})}});
  CHECK_THROWS_WITH(load_model(path, net_of(8, 1)), ContainsSubstring("bcube.base_cube"));
  write_safetensors(path, {{"other", torch::zeros({1})}, {"bcube.base_cube", torch::zeros({2, 8, 8})}});
  CHECK_THROWS_WITH(load_model(path, net_of(8, 1)), ContainsSubstring("other"));
}
