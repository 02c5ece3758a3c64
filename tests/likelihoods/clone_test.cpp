#include "catch.h"

#include <memory>
#include <vector>

#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/likelihoods/block_likelihood.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/noise_likelihood.h>

#include "compare.h"
#include "random.h"
#include "train/problems.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords clone_grid(0.05, 16);

std::vector<std::shared_ptr<Likelihood>> every_likelihood() {
  const auto data = random_visibilities(clone_grid, 2, 7);
  const auto channels = ChannelMap::cube(2);
  auto blocks = BlockLikelihood(clone_grid, std::vector{DataBlock(data, channels).fit_shift()});
  const auto noise = NoiseModel::student(4);
  auto student = NoiseLikelihood(clone_grid, data, channels, noise, NufftOptions{}, 2 * data.weights());
  return {random_likelihood("gridded", clone_grid, 2, torch::kFloat64), ExactLikelihood(clone_grid, data, channels).ptr(),
          LooseLikelihood(clone_grid, data, channels).ptr(), student.ptr(), blocks.ptr()};
}

}  // namespace

TEST_CASE("a copy of a likelihood is the same, and moves by itself", "[losses][quick]") {
  const auto sky = uniform({2, 16, 16}, torch::kFloat64, 3);
  for (const auto& likelihood : every_likelihood()) {
    CAPTURE(likelihood->name());
    auto gradient = torch::empty_like(sky), own_gradient = torch::empty_like(sky);
    const auto value = likelihood->value_and_gradient(sky, gradient, Accumulate::overwrite);
    const auto copy = likelihood->as_module().clone(), moved = likelihood->as_module().clone();
    auto* same_one = dynamic_cast<Likelihood*>(copy.get());
    REQUIRE(same_one != nullptr);
    moved->to(torch::kMeta);
    moved->to(torch::kFloat32);
    for (const auto& buffer : likelihood->as_module().named_buffers()) {
      CAPTURE(buffer.key());
      CHECK(buffer.value().is_cpu());
      CHECK(moved->named_buffers()[buffer.key()].is_meta());
      CHECK(same(copy->named_buffers()[buffer.key()], buffer.value()));
      CHECK(copy->named_buffers()[buffer.key()].data_ptr() != buffer.value().data_ptr());
    }
    CHECK(same(likelihood->value_and_gradient(sky, own_gradient, Accumulate::overwrite), value));
    CHECK(same(own_gradient, gradient));
    CHECK(same(same_one->value_and_gradient(sky, own_gradient, Accumulate::overwrite), value));
    CHECK(same(own_gradient, gradient));
  }
}

TEST_CASE("a copy of a dataset is cast by itself", "[datasets][quick]") {
  const auto dataset = random_dataset(clone_grid, 2, 7);
  const GriddedDataset copy(std::dynamic_pointer_cast<GriddedDatasetImpl>(dataset->clone()));
  copy.ptr()->to(torch::kFloat32);
  CHECK(dataset->weights().scalar_type() == torch::kFloat64);
  CHECK(copy->weights().scalar_type() == torch::kFloat32);
  CHECK(same(copy->weights(), dataset->weights().to(torch::kFloat32)));
}
