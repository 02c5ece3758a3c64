#include "catch.h"

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/train/train_to_dirty.h>

#include "compare.h"
#include "golden.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

GriddedNet dirty_net(torch::Dtype dtype) { return GriddedNet(GriddedNetOptions(dataset_coords()).nchan(2).dtype(dtype)); }

}  // namespace

TEMPLATE_TEST_CASE("training to the dirty image goes MPoL's way", "[train]", float, double) {
  const Golden golden("train_to_dirty");
  const auto& dirty = golden("in_dirty_image_sky");
  const auto& steps = golden("in_steps");
  const double bound = tolerance<TestType>(1e-10, 1e-4);
  auto net = dirty_net(dtype_of<TestType>());
  std::int64_t done = 0;
  for (std::int64_t i = 0; i < steps.size(0); ++i) {  // gradient descent has no memory: more steps go on from there
    const auto count = steps[i].item<std::int64_t>();
    const auto options = TrainToDirtyOptions().learning_rate(golden.number("in_lr")).steps(count - done);
    CHECK(train_to_dirty_image(net, dirty, options) == Approx(golden("out_loss_after")[i].item<double>()).epsilon(bound));
    const auto key = "out_base_" + std::to_string(count) + "_packed";
    if (golden.has(key)) CHECK(relative_error(sky_to_packed(net->bcube->base_cube()), golden(key)) < bound);
    done = count;
  }
}

TEST_CASE("the dirty image to train to is the imager's in Jy/arcsec^2", "[train][quick]") {
  const Golden golden("train_to_dirty"), dataset("dataset");
  const Visibilities visibilities(Baselines::in_lambda(dataset("in_uu"), dataset("in_vv")), dataset("in_data"),
                                  dataset("in_weight"));
  const DirtyImager imager(
      dataset_coords(), visibilities,
      DirtyImagerOptions().imaging(Imaging::cells).robust(golden.number("in_robust")).unit(ImageUnit::jy_per_arcsec2));
  // MPoL's beam area, by which the reference is scaled, is not the right one: compare shapes.
  const auto ours = imager.image()[0], theirs = golden("in_dirty_image_sky")[0];
  CHECK(relative_error(ours / ours.max(), theirs / theirs.max()) < 1e-12);
}

TEST_CASE("at the dirty image itself nothing moves", "[train][quick]") {
  auto net = dirty_net(torch::kFloat64);
  const auto before = net->bcube->base_cube().detach().clone();
  CHECK(train_to_dirty_image(net, net->make_sky().detach(), TrainToDirtyOptions().steps(3)) == 0.0);
  CHECK(torch::equal(net->bcube->base_cube(), before));
}

TEST_CASE("training to a dirty image that does not fit is refused", "[train][quick]") {
  auto net = dirty_net(torch::kFloat32);
  CHECK_THROWS_AS(train_to_dirty_image(net, torch::zeros({1, 64, 64})), ShapeError);
  CHECK_THROWS_AS(train_to_dirty_image(net, torch::zeros({2, 64, 64}), TrainToDirtyOptions().learning_rate(0)), ValueError);
  CHECK_THROWS_AS(train_to_dirty_image(net, torch::zeros({2, 64, 64}), TrainToDirtyOptions().steps(0)), ValueError);
  const auto broken = torch::full({2, 64, 64}, std::numeric_limits<double>::infinity());
  CHECK_THROWS_AS(train_to_dirty_image(net, broken, TrainToDirtyOptions().steps(2)), DivergedError);
}
