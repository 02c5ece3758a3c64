#include "catch.h"

#include <ATen/ops/equal.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/simulation/scene.h>

#include "compare.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// The part of the flux within a share of the field's half width.
double share_within(const Tensor& image, double share) {
  const auto npix = image.size(0), border = static_cast<std::int64_t>((1 - share) / 2 * static_cast<double>(npix));
  const auto middle = image.narrow(0, border, npix - 2 * border).narrow(1, border, npix - 2 * border);
  return (middle.sum() / image.sum()).item<double>();
}

}  // namespace

TEST_CASE("scenes have the flux asked for, are nowhere negative and repeat", "[simulation][quick]") {
  const GridCoords coords(0.05, 64);
  for (const auto& name : scene_names()) {
    CAPTURE(name);
    const auto scene = scene_by_name(name);
    const auto image = render(scene, coords, 0.3, 4);
    REQUIRE(image.sizes() == torch::IntArrayRef({64, 64}));
    CHECK(image.sum().item<double>() * coords.cell_area() == Approx(0.3).epsilon(1e-12));
    CHECK(image.min().item<double>() >= 0);
    CHECK(at::equal(image, render(scene, coords, 0.3, 4)));
    CHECK_FALSE(at::equal(image, render(scene, coords, 0.3, 5)));
    CHECK(share_within(image, 0.9) > 0.99);
  }
}

TEST_CASE("scenes of half the cell size show the same structure", "[simulation][quick]") {
  const GridCoords coarse(0.04, 128), fine(0.02, 256);
  const auto low = render(Scene::blobs, coarse, 1, 2), high = render(Scene::blobs, fine, 1, 2);
  // Sky columns: l of a pixel is that of two pixels of half the size, at column 2 k + 1 and rows 2 k.
  const auto same = high.slice(0, 0, 256, 2).slice(1, 1, 256, 2);
  CHECK((same - low).abs().max().item<double>() < 1e-3 * low.max().item<double>());
}

TEST_CASE("scenes refuse names and fluxes without meaning", "[simulation][quick]") {
  CHECK_THROWS_WITH(scene_by_name("cloud"), ContainsSubstring("blobs, nebula, galaxy"));
  CHECK_THROWS_WITH(render(Scene::nebula, GridCoords(0.1, 16), 0, 0), ContainsSubstring("positive"));
}
