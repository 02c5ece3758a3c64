#include "catch.h"

#include <cstdint>
#include <tuple>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

#include "../compare.h"
#include "../random.h"
#include "../threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

void check_same(const UvSummary& own, const UvSummary& wanted) {
  CHECK(own.max_abs_u == wanted.max_abs_u);
  CHECK(own.max_abs_v == wanted.max_abs_v);
  CHECK(own.shortest == wanted.shortest);
  CHECK(own.longest == wanted.longest);
  CHECK(own.short_end == wanted.short_end);
  CHECK(own.shortest_of_array == wanted.shortest_of_array);
}

Baselines some_baselines(torch::Dtype dtype) {
  const auto scale = at::linspace(0.5, 1, 3, dtype).unsqueeze(1);
  return Baselines::in_lambda(normal({70000}, dtype, 1) * 1e5 * scale, normal({70000}, dtype, 2) * 3e4 * scale);
}

}  // namespace

TEMPLATE_TEST_CASE("baselines are summed up alike by any number of threads and in any parts", "[visibilities][quick]", float,
                   double) {
  const auto all = some_baselines(dtype_of<TestType>());
  const auto wanted = summarize_uv(all);
  const auto [u, v] = all.stacked();
  const auto q = (u.square() + v.square()).sqrt();
  CHECK(wanted.shortest == Approx(q.min().template item<double>()));
  CHECK(wanted.longest == Approx(q.max().template item<double>()));
  CHECK(wanted.short_end == Approx(std::get<0>(q.flatten().sort())[3 * 3500].template item<double>()).epsilon(0.02));
  for (const int threads : {1, 2, 3}) {
    const Threads count(threads);
    check_same(summarize_uv(all), wanted);
  }
  std::vector<torch::Tensor> rows{no_uv_rows()};
  for (const auto& channels : std::vector<std::vector<std::int64_t>>{{0, 2}, {1}})
    rows.push_back(uv_row(all.select_channels(channels)));
  check_same(summarize_uv(at::cat(rows)), wanted);
}

TEST_CASE("baselines without a length have no shortest one", "[visibilities][quick]") {
  const auto nothing = at::zeros({3}, torch::kFloat64);
  const auto none = Baselines::in_lambda(nothing, nothing);
  check_same(summarize_uv(none), {});
  check_same(summarize_uv(at::cat({uv_row(none), uv_row(none)})), {});
  CHECK_THROWS_AS(summarize_uv(at::zeros({2, 7}, torch::kFloat64)), ShapeError);
}
