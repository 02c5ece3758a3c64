// Polar maps, matches and filters on a GPU against the CPU's. Run by hand or by scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <mpol_cpp/analysis/matched_filter.h>
#include <mpol_cpp/analysis/matching/template_matching.h>
#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/device/move.h>

#include "compare.h"
#include "required_gpu.h"
#include "fourier/edge_baselines.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEMPLATE_TEST_CASE("polar maps of a stack, and their adjoint, are the CPU's on a GPU", "[gpu][analysis]", float, double) {
  const auto gpu = required_gpu();
  const GridCoords coords(0.05, 60);
  const PolarIntegrator integrator(coords, PolarIntegratorOptions()
                                               .radii(even_edges(0, 1.2, 20))
                                               .azimuths(even_edges(0, 2 * units::pi, 36))
                                               .geometry({.inclination = 0.7, .position_angle = 0.4, .offset_east = 0.11}));
  const auto frames = uniform({5, 60, 60}, dtype_of<TestType>(), 1);
  const auto here = integrator.integrate(frames), there = integrator.integrate(frames.to(gpu));
  const double within = tolerance<TestType>(1e-12, 1e-5);
  REQUIRE(there.sum.is_cuda());
  CHECK(relative_error(there.sum.cpu(), here.sum) < within);
  CHECK(relative_error(there.mean.cpu(), here.mean) < within);
  CHECK(relative_error(there.variance.cpu(), here.variance) < 10 * within);
  const auto map = normal({5, 20, 36}, dtype_of<TestType>(), 2);
  CHECK(relative_error(integrator.adjoint(map.to(gpu)).cpu(), integrator.adjoint(map)) < within);
}

TEMPLATE_TEST_CASE("templates match on a GPU as they do on the CPU", "[gpu][analysis]", float, double) {
  const auto gpu = required_gpu();
  const auto maps = normal({6, 8, 40}, dtype_of<TestType>(), 3);
  const PolarTemplates templates(normal({9, 8, 40}, dtype_of<TestType>(), 4));
  const auto options = MatchOptions().n_best(3);
  const auto here = match_templates(maps, templates, options), there = match_templates(maps.to(gpu), templates, options);
  REQUIRE(there.score.is_cuda());
  CHECK(torch::equal(there.index.cpu(), here.index));
  CHECK(torch::equal(there.mirrored.cpu(), here.mirrored));
  CHECK(relative_error(there.angle.cpu(), here.angle) < tolerance<TestType>(1e-12, 1e-4));
  CHECK(relative_error(there.score.cpu(), here.score) < tolerance<TestType>(1e-12, 1e-5));
}

TEMPLATE_TEST_CASE("the response of a matched filter on a GPU is the CPU's", "[gpu][analysis]", float, double) {
  const auto gpu = required_gpu();
  constexpr std::int64_t nchan = 12, width = 4;
  const GridCoords coords(0.03, 64);
  const auto points = edge_baselines(coords, 3000, 5);
  const auto &u = points.u(), &v = points.v();
  const Visibilities data(Baselines::in_lambda(u, v), normal({nchan, points.nvis()}, complex_dtype_of<TestType>(), 6),
                          uniform({nchan, points.nvis()}, dtype_of<TestType>(), 7) + 0.5);
  const auto templates = uniform({width, 64, 64}, dtype_of<TestType>(), 8);
  const auto options = MatchedFilterOptions().dtype(dtype_of<TestType>()).tolerance(tolerance<TestType>(1e-11, 1e-5));
  const auto here = matched_filter(data, templates, coords, options),
             there = matched_filter(copy_to(data, gpu), templates.to(gpu), coords, options);
  CHECK(relative_error(there.response, here.response) < tolerance<TestType>(1e-8, 1e-3));
  CHECK(relative_error(there.amplitude_error, here.amplitude_error) < tolerance<TestType>(1e-8, 1e-3));
}
