// The kernels that find cells, for each instruction set.
#include "catch.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <mpol_cpp/gridding/cells/cell_box.h>
#include <mpol_cpp/gridding/cells/cell_kernels.h>
#include <mpol_cpp/ops/simd/isa.h>

#include "random.h"

using namespace mpol;
using namespace mpol::gridding;
using namespace mpol::testing;

namespace {

/// Coordinates all over the grid, and some on both sides of the edges of cells, within rounding and beyond.
template <typename Real>
std::vector<Real> coordinates(const GridCoords& coords, std::uint64_t seed) {
  std::vector<Real> values;
  const auto anywhere = (uniform({1000}, torch::kDouble, seed) * 2 - 1) * 0.999 * coords.max_uv();
  for (std::int64_t i = 0; i < 1000; ++i) {
    const auto value = anywhere[i].item<double>();
    values.push_back(static_cast<Real>(value));
    const auto edge = (std::floor(value / coords.du()) + 0.5) * coords.du();
    for (const double off : {0.0, 1e-16, -1e-16, 1e-15, -1e-15, 3e-11, -3e-11, 2e-9, -2e-9, 3e-5, -3e-5}) {
      const auto near = static_cast<Real>(edge + off * coords.max_uv());
      if (std::abs(near) < 0.999 * coords.max_uv()) values.push_back(near);
    }
  }
  return values;
}

/// Calls `check(kernels)` for each instruction set that this machine has.
template <typename Check>
void with_each_isa(const Check& check) {
  for (const auto isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (!isa_supported(isa)) continue;
    INFO("instruction set " << to_string(isa));
    check(cell_kernels(isa));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("kernels find the cells of GridCoords::uv_cell, also beside their edges", "[gridding][quick]", double, float) {
  for (const std::int64_t npix : {2, 64, 1022, 65536}) {
    const GridCoords coords(0.0123, npix);
    const auto u = coordinates<TestType>(coords, 1);
    auto v = u;
    std::rotate(v.begin(), v.begin() + 777, v.end());
    const auto count = static_cast<std::int64_t>(u.size());
    std::vector<std::uint32_t> keys(u.size());
    const auto width = static_cast<std::int32_t>(npix);
    const auto cell = [&](TestType coordinate) { return coords.uv_cell(static_cast<double>(coordinate)); };
    with_each_isa([&](const CellKernels& kernels) {
      for (const bool partner : {false, true}) {
        const CellRule rule{1, coords.du(), width, 0, width, partner};
        kernels.locate({u.data(), v.data(), sizeof(TestType) == 8}, count, rule, keys.data());
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < u.size(); ++i) {
          const auto row = partner ? npix - cell(v[i]) : cell(v[i]), column = partner ? npix - cell(u[i]) : cell(u[i]);
          wrong += keys[i] == row * npix + column ? 0 : 1;
        }
        INFO("npix " << npix << ", partner " << partner);
        CHECK(wrong == 0);
      }
    });
  }
}

TEST_CASE("the keys of a box increase as the packed indices of its cells do", "[gridding][quick]") {
  const GridCoords coords(0.01, 256);
  for (const double reach : {0.0, 0.013, 0.2, 0.5, 0.9999}) {
    const double largest = reach * coords.max_uv();
    const CellBox box(coords, largest);
    std::vector<double> edges;
    for (const double u : {-largest, -0.4 * largest, 0.0, 0.6 * largest, largest}) edges.push_back(u);
    with_each_isa([&](const CellKernels& kernels) {
      for (const double v : edges) {
        const std::vector<double> rows(edges.size(), v);
        std::vector<std::uint32_t> keys(edges.size());
        kernels.locate({edges.data(), rows.data(), true}, static_cast<std::int64_t>(edges.size()), box.rule(1, false),
                       keys.data());
        for (std::size_t i = 0; i < edges.size(); ++i) {
          const auto packed = [&](double x) { return (coords.uv_cell(x) + 128) % 256; };
          REQUIRE(keys[i] < box.cells());
          CHECK(box.packed_index(keys[i]) == packed(v) * 256 + packed(edges[i]));
        }
      }
    });
    for (std::int64_t key = 1; key < box.cells(); ++key) {
      if (box.packed_index(key) <= box.packed_index(key - 1)) FAIL("key " << key);
    }
  }
}
