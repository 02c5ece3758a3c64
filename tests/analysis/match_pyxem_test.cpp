#include "catch.h"

#include <ATen/ops/arange.h>

#include <mpol_cpp/analysis/matching/template_matching.h>
#include <mpol_cpp/core/units.h>

#include "compare.h"
#include "golden.h"

using namespace mpol;
using namespace mpol::testing;

// Against pyxem's own functions on its examples (tests/analysis/make_match_reference.py).

namespace {

PolarTemplates templates_of(const Golden& golden, const std::string& name, std::int64_t nr) {
  return {PolarPoints{golden("in_" + name + "_r"), golden("in_" + name + "_theta"), golden("in_" + name + "_intensity")}, nr,
          360};
}

/// As pyxem has them: samples at azimuth 0, profiles with the weight r/nr.
MatchOptions as_pyxem(MatchScore score, std::int64_t nr, std::int64_t n_best) {
  return MatchOptions().score(score).n_best(n_best).first_azimuth(0).coarse_weights(at::arange(nr, torch::kFloat64) /
                                                                                    static_cast<double>(nr));
}

Tensor in_degrees(const Tensor& angle) { return angle / units::degree; }

}  // namespace

TEMPLATE_TEST_CASE("silicon: matches are those of pyxem's get_orientation", "[analysis][matching][quick]", float, double) {
  const Golden golden("pyxem");
  const auto frames = golden("in_si_frames").to(dtype_of<TestType>());
  const auto templates = templates_of(golden, "si", frames.size(1));
  for (const double fraction : {1.0, 0.1}) {
    const auto expected = golden(fraction == 1.0 ? "out_si_all" : "out_si_tenth");
    const auto found =
        match_templates(frames, templates, as_pyxem(MatchScore::projection, frames.size(1), 5).keep_fraction(fraction));
    CHECK(relative_error(found.score, expected.select(2, 1)) < tolerance<TestType>(1e-12, 1e-6));
    CHECK(at::equal(found.index, expected.select(2, 0).to(torch::kInt64)));
    // Where symmetry makes angles and mirrors equal, pyxem takes one by rounding and we the first: its own has our score.
    const auto of_pyxem = expected.select(2, 2).to(torch::kInt64) + 360 * (expected.select(2, 3) < 0).to(torch::kInt64);
    const auto ours = (in_degrees(found.angle)).round().to(torch::kInt64) + 360 * found.mirrored.to(torch::kInt64);
    for (std::int64_t k = 0; k < 5; ++k) {
      const auto curves = rotation_scores(frames, templates, found.index.select(1, k), as_pyxem(MatchScore::projection, 100, 1));
      const auto score_at = [&](const Tensor& places) { return curves.flatten(1).gather(1, places.select(1, k).unsqueeze(1)); };
      CHECK(relative_error(score_at(of_pyxem), expected.select(2, 1).select(1, k).unsqueeze(1)) <
            tolerance<TestType>(1e-12, 1e-6));
      CHECK(relative_error(score_at(ours), expected.select(2, 1).select(1, k).unsqueeze(1)) < tolerance<TestType>(1e-12, 4e-6));
    }
    CHECK((of_pyxem == ours).to(torch::kFloat64).mean().template item<double>() > 0.5);
  }
}

TEMPLATE_TEST_CASE("iron: matches are those of pyxem's get_n_best_matches", "[analysis][matching][quick]", float, double) {
  const Golden golden("pyxem");
  const auto samples = golden("in_fe_samples").to(dtype_of<TestType>());
  const auto templates = templates_of(golden, "fe", samples.size(0));
  const auto options = as_pyxem(MatchScore::cosine, samples.size(0), 8);
  const auto found = match_templates(samples, templates, options);
  CHECK(relative_error(found.score, golden("out_fe_score")) < tolerance<TestType>(1e-12, 1e-6));
  CHECK(at::equal(found.index, golden("out_fe_index").to(torch::kInt64)));
  CHECK(at::equal(found.mirrored, golden("out_fe_sign") < 0));
  CHECK(relative_error(in_degrees(found.angle), golden("out_fe_angle")) < 1e-12);

  const auto kept = match_templates(samples, templates, MatchOptions(options).keep(20));
  CHECK(relative_error(kept.score, golden("out_fe_kept_score")) < tolerance<TestType>(1e-12, 1e-6));
  CHECK(at::equal(kept.index, golden("out_fe_kept_index").to(torch::kInt64)));

  const auto curve = rotation_scores(samples, templates, torch::tensor(5, torch::kInt64), options);
  CHECK(relative_error(curve[0], golden("out_fe_curve")) < tolerance<TestType>(1e-12, 1e-6));
}
