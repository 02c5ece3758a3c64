#include "catch.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/analysis/matching/template_matching.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>

#include "compare.h"
#include "forced_isa.h"
#include "instruction_sets.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr double whole_turn = 2 * units::pi;

/// Points of `count` templates, some rows shorter than others, some points in one bin.
PolarPoints random_points(std::int64_t count, std::int64_t most, std::int64_t nr, std::int64_t nphi, std::uint64_t seed) {
  const auto place = [&](std::int64_t bins, std::uint64_t own) {
    return (uniform({count, most}, torch::kFloat64, seed + own) * static_cast<double>(bins)).floor().to(torch::kInt64);
  };
  const auto there = place(4, 3) > 0;
  return {place(nr, 0), place(nphi, 1), (uniform({count, most}, torch::kFloat64, seed + 2) + 0.2) * there};
}

PolarTemplates as_maps(const PolarTemplates& templates, torch::Dtype dtype) {
  return PolarTemplates(templates.maps(at::arange(templates.size(), torch::kInt64), torch::TensorOptions(dtype)));
}

/// Libraries of both kinds.
std::vector<PolarTemplates> libraries(std::int64_t count, std::int64_t nr, std::int64_t nphi, torch::Dtype dtype) {
  return {PolarTemplates(normal({count, nr, nphi}, dtype, 11)), PolarTemplates(random_points(count, 9, nr, nphi, 12), nr, nphi)};
}

Tensor map_of(const PolarTemplates& templates, std::int64_t index, torch::Dtype dtype) {
  return templates.maps(torch::tensor({index}, torch::kInt64), torch::TensorOptions(dtype))[0];
}

/// Mirrored about azimuth 0, the first edge of a bin, then turned.
Tensor turned(const Tensor& map, std::int64_t bins, bool mirrored) { return at::roll(mirrored ? map.flip(-1) : map, bins, -1); }

/// The score by its formula, in float64.
double direct_score(const Tensor& image, const Tensor& map, const Tensor& weights, MatchScore score) {
  auto i = image.to(torch::kFloat64), t = map.to(torch::kFloat64);
  const auto w = weights.view({-1, 1}).expand(i.sizes());
  const auto sum = [&](const Tensor& values) { return (values * w).sum().item<double>(); };
  if (score == MatchScore::correlation) {
    i = i - sum(i) / w.sum().item<double>();
    t = t - sum(t) / w.sum().item<double>();
  }
  double scale = 1;
  if (score != MatchScore::product) scale *= std::sqrt(sum(t * t));
  if (score == MatchScore::correlation || score == MatchScore::cosine) scale *= std::sqrt(sum(i * i));
  return sum(i * t) / scale;
}

bool same_matches(const Matches& a, const Matches& b, double tolerated) {
  return same(a.index, b.index) && same(a.mirrored, b.mirrored) && same(a.angle, b.angle) &&
         relative_error(a.score, b.score) <= tolerated;
}

Matches without_dimension(const Matches& all, std::int64_t i) {
  return {all.index[i], all.angle[i], all.mirrored[i], all.score[i]};
}

}  // namespace

TEMPLATE_TEST_CASE("a template that was scaled, lifted, turned and mirrored is found so, with the score 1",
                   "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  for (const std::int64_t nphi : {24, 35}) {
    for (const auto& templates : libraries(7, 10, nphi, dtype)) {
      for (const bool mirrored : {false, true}) {
        for (const std::int64_t bins : {std::int64_t{0}, std::int64_t{1}, nphi / 3, nphi - 1}) {
          const auto image = 3.7 * turned(map_of(templates, 4, dtype), bins, mirrored) + 1.3;
          const auto found = match_templates(image, templates, MatchOptions().n_best(2));
          CHECK(found.index[0].template item<std::int64_t>() == 4);
          CHECK(found.mirrored[0].template item<bool>() == mirrored);
          CHECK(found.angle[0].template item<double>() ==
                Approx(whole_turn * static_cast<double>(bins) / static_cast<double>(nphi)).margin(1e-12));
          CHECK(found.score[0].template item<double>() == Approx(1).epsilon(tolerance<TestType>(1e-12, 1e-5)));
          CHECK(found.score[1].template item<double>() < 0.9);
          CHECK(found.score.scalar_type() == dtype);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("scores of all angles are those of direct sums", "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const std::int64_t nr = 6;
  const auto weights = uniform({nr}, torch::kFloat64, 5) + 0.1, even = torch::ones({nr}, torch::kFloat64);
  for (const std::int64_t nphi : {1, 2, 3, 16, 17, 40}) {
    for (const auto& templates : libraries(3, nr, nphi, dtype)) {
      const auto image = normal({nr, nphi}, dtype, 21) + 0.5;
      for (const auto score : {MatchScore::correlation, MatchScore::cosine, MatchScore::projection, MatchScore::product}) {
        for (const bool weighted : {false, true}) {
          auto options = MatchOptions().score(score);
          if (weighted) options.weights(weights);
          const auto scores = rotation_scores(image, templates, torch::tensor(1, torch::kInt64), options);
          auto expected = at::zeros({2, nphi}, torch::kFloat64);
          for (std::int64_t s = 0; s < nphi; ++s) {
            const auto map = map_of(templates, 1, dtype);
            expected[0][s] = direct_score(image, turned(map, s, false), weighted ? weights : even, score);
            expected[1][s] = direct_score(image, turned(map, s + 1, true), weighted ? weights : even, score);
          }
          CHECK(relative_error(scores, expected) < tolerance<TestType>(1e-12, 2e-5));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("the best matches are those of all scores", "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto images = normal({5, 8, 30}, dtype, 31);
  for (const auto& templates : libraries(12, 8, 30, dtype)) {
    for (const auto mirrors : {Mirrors::none, Mirrors::both}) {
      const auto options = MatchOptions().n_best(4).mirrors(mirrors);
      const auto found = match_templates(images, templates, options);
      for (std::int64_t i = 0; i < 5; ++i) {
        const auto curves = rotation_scores(images[i].expand({12, 8, 30}), templates, at::arange(12, torch::kInt64), options);
        CHECK(curves.size(1) == (mirrors == Mirrors::both ? 2 : 1));
        const auto [score, index] = curves.flatten(1).amax(-1).sort(0, true);
        CHECK(relative_error(found.score[i], score.slice(0, 0, 4)) < tolerance<TestType>(1e-13, 1e-5));
        CHECK(same(found.index[i], index.slice(0, 0, 4)));
        for (std::int64_t k = 0; k < 4; ++k) {
          const auto place =
              curves[found.index[i][k].template item<std::int64_t>()].flatten().argmax().template item<std::int64_t>();
          const auto bin = place >= 30 ? (place - 30 + 1) % 30 : place;  // first_azimuth 0.5
          CHECK(found.mirrored[i][k].template item<bool>() == (place >= 30));
          CHECK(found.angle[i][k].template item<double>() == Approx(whole_turn * static_cast<double>(bin) / 30).margin(1e-12));
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("points match as their maps do", "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const PolarTemplates points(random_points(20, 12, 15, 60, 41), 15, 60);
  const auto images = normal({6, 15, 60}, dtype, 42);
  for (const auto score : {MatchScore::correlation, MatchScore::cosine, MatchScore::projection}) {
    const auto options = MatchOptions().n_best(3).score(score).keep(12).angles(AngleSteps::parabola);
    const auto a = match_templates(images, points, options), b = match_templates(images, as_maps(points, dtype), options);
    CHECK(same(a.index, b.index));
    CHECK(same(a.mirrored, b.mirrored));
    CHECK((a.angle - b.angle).abs().max().template item<double>() < tolerance<TestType>(1e-10, 1e-3));
    CHECK(relative_error(a.score, b.score) < tolerance<TestType>(1e-13, 1e-5));
  }
}

TEMPLATE_TEST_CASE("memory budgets, batches, leading dimensions and threads leave the result as it is",
                   "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto images = normal({3, 11, 9, 32}, dtype, 51);
  for (const auto& templates : libraries(23, 9, 32, dtype)) {
    const bool points = templates.points() != nullptr;
    const double rounding = points ? 0 : tolerance<TestType>(1e-14, 2e-6);
    for (const std::int64_t keep : {23, 6}) {
      const auto options = MatchOptions().n_best(3).keep(keep);
      const auto whole = match_templates(images, templates, options);
      REQUIRE(whole.index.sizes() == at::IntArrayRef({3, 11, 3}));
      for (const std::int64_t budget : {60'000, 100'000, 1'000'000})
        CHECK(same_matches(match_templates(images, templates, MatchOptions(options).memory_budget(budget)), whole, rounding));
      CHECK(same_matches(match_templates(images[1], templates, options), without_dimension(whole, 1), rounding));
      const auto one = match_templates(images[2][7], templates, options);
      CHECK(same_matches(one, without_dimension(without_dimension(whole, 2), 7), rounding));
      const Threads threads(3);
      CHECK(same_matches(match_templates(images, templates, options), whole, rounding));
    }
  }
}

TEST_CASE("a search from coarse to fine tries the templates whose profiles suit best, and finds the same among them",
          "[analysis][matching][quick]") {
  const std::int64_t nr = 12, nphi = 20, size = 40;
  const auto maps = uniform({size, nr, nphi}, torch::kFloat64, 61) * uniform({size, nr, 1}, torch::kFloat64, 62);
  const PolarTemplates templates(maps);
  const auto image = turned(maps[17], 6, true) + 0.2 * normal({nr, nphi}, torch::kFloat64, 63);
  const auto coarse = uniform({nr}, torch::kFloat64, 64);
  for (const bool weighted : {false, true}) {
    auto options = MatchOptions().n_best(5).score(MatchScore::cosine);
    if (weighted) options.coarse_weights(coarse);
    const auto all = match_templates(image, templates, options);
    const auto profile = image.sum(1) * (weighted ? coarse : torch::ones_like(coarse));
    const auto of_templates = maps.sum(2) / maps.sum(2).square().sum(1, true).sqrt();
    const auto kept = std::get<1>(of_templates.matmul(profile).topk(8));
    REQUIRE((kept == 17).any().item<bool>());
    const auto some = match_templates(image, templates, MatchOptions(options).keep(8));
    CHECK(some.index[0].item<std::int64_t>() == 17);
    CHECK(same_matches({some.index[0], some.angle[0], some.mirrored[0], some.score[0]},
                       {all.index[0], all.angle[0], all.mirrored[0], all.score[0]}, 1e-13));
    const auto full = match_templates(image, PolarTemplates(maps.index_select(0, kept)), options);
    CHECK(same(some.index, kept.index_select(0, full.index)));
    CHECK(same_matches(match_templates(image, templates, MatchOptions(options).keep_fraction(0.2)), some, 0));
    CHECK(same_matches(match_templates(image, templates, MatchOptions(options).keep_fraction(1e-9)),
                       match_templates(image, templates, MatchOptions(options).keep(5)), 0));  // n_best are kept at least
  }
}

TEMPLATE_TEST_CASE("an angle between bins is found by the parabola", "[analysis][matching][quick]", float, double) {
  const std::int64_t nphi = 90;
  const auto azimuth = (at::arange(nphi, torch::kFloat64) + 0.5) * (whole_turn / static_cast<double>(nphi));
  const auto lopsided = [&](double angle, double sign) {  // a narrow side and a wide one
    const auto from = (sign * (azimuth - angle) + units::pi).remainder(whole_turn) - units::pi;
    return (torch::exp(-0.5 * (from / 0.5).square()) + 0.4 * torch::exp(-0.5 * ((from - 1) / 0.4).square()))
        .expand({4, nphi})
        .to(dtype_of<TestType>());
  };
  const PolarTemplates templates(lopsided(0, 1).unsqueeze(0));
  const double step = whole_turn / static_cast<double>(nphi);
  for (const double sign : {1.0, -1.0}) {
    for (const double angle : {0.31, 1.003, 4.5, 6.28}) {
      const auto image = lopsided(angle, sign);
      const auto away = [&](AngleSteps steps) {
        const auto found = match_templates(image, templates, MatchOptions().angles(steps));
        CHECK(found.mirrored.template item<bool>() == (sign < 0));
        return std::abs(std::remainder(found.angle.template item<double>() - angle, whole_turn)) / step;
      };
      CHECK(away(AngleSteps::bins) <= 0.501);
      CHECK(away(AngleSteps::parabola) < 0.02);
    }
  }
}

TEMPLATE_TEST_CASE("of angles that are equal by symmetry the first is taken, and no mirror", "[analysis][matching][quick]", float,
                   double) {
  const std::int64_t nphi = 60;
  const auto azimuth = (at::arange(nphi, torch::kFloat64) + 0.5) * (whole_turn / static_cast<double>(nphi));
  const auto radius = at::arange(1, 9, torch::kFloat64).view({-1, 1});
  const auto ring = (torch::exp(-0.5 * (radius - 4).square()) * torch::ones({nphi}, torch::kFloat64)).to(dtype_of<TestType>());
  const auto two_arms = torch::cos(2 * azimuth + radius).to(dtype_of<TestType>());
  const auto bar = (torch::cos(2 * azimuth) * radius).to(dtype_of<TestType>());
  const auto angle_of = [](const Tensor& image, const Tensor& map) {
    const auto found = match_templates(image, PolarTemplates(map.unsqueeze(0)));
    CHECK_FALSE(found.mirrored.template item<bool>());
    CHECK(found.score.template item<double>() == Approx(1).epsilon(1e-5));
    return found.angle.template item<double>();
  };
  CHECK(angle_of(ring * 3, ring) == 0);
  CHECK(angle_of(at::roll(two_arms, 40, -1), two_arms) == Approx(whole_turn * 10 / 60));
  CHECK(angle_of(at::roll(bar, 7, -1), bar) == Approx(whole_turn * 7 / 60));
}

TEMPLATE_TEST_CASE("a matched template lies in the image as it was found", "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto weights = uniform({10}, torch::kFloat64, 65) + 0.1;
  for (const auto& templates : libraries(5, 10, 36, dtype)) {
    for (const auto score : {MatchScore::correlation, MatchScore::cosine}) {
      const double level = score == MatchScore::correlation ? 1.3 : 0;
      const auto images = at::stack({2.5 * turned(map_of(templates, 3, dtype), 11, true) + level,
                                     0.7 * turned(map_of(templates, 0, dtype), 29, false) + level});
      const auto options = MatchOptions().score(score).weights(weights).n_best(2).angles(AngleSteps::parabola);
      const auto found = match_templates(images, templates, options);
      const auto placed = matched_templates(images, templates, found, options);
      CHECK(placed.scalar_type() == dtype);
      CHECK(relative_error(placed, images) < tolerance<TestType>(1e-12, 1e-5));
      // What the template does not explain is not explained: the residual has no product with it.
      const auto noisy = images + 0.3 * normal({2, 10, 36}, dtype, 66);
      const auto rest = noisy - matched_templates(noisy, templates, found, options);
      const auto product =
          (rest * placed * weights.view({-1, 1})).sum({1, 2}) / (placed.square() * weights.view({-1, 1})).sum({1, 2});
      CHECK(product.abs().max().template item<double>() < tolerance<TestType>(1e-12, 1e-5));
      CHECK_THROWS_AS(matched_templates(images[0], templates, found, options), ShapeError);
    }
  }
}

TEMPLATE_TEST_CASE("what has no contrast scores 0", "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  const auto maps = normal({3, 5, 12}, dtype, 71);
  maps[1].fill_(0.1);
  const PolarTemplates templates(maps);
  CHECK(match_templates(torch::full({5, 12}, 0.7, dtype), templates, MatchOptions().n_best(3))
            .score.abs()
            .max()
            .template item<double>() == 0);
  const auto scores = rotation_scores(normal({5, 12}, dtype, 72), templates, torch::tensor(1, torch::kInt64));
  CHECK(scores.abs().max().template item<double>() == 0);
  const PolarTemplates nothing(
      PolarPoints{torch::zeros({1, 2}, torch::kInt64), torch::zeros({1, 2}, torch::kInt64), torch::zeros({1, 2})}, 5, 12);
  CHECK(match_templates(maps[0], nothing).score.template item<double>() == 0);
}

TEMPLATE_TEST_CASE("every instruction set gives the same matches of points", "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  for (const std::int64_t nphi : {1, 7, 16, 33, 127, 360}) {
    const PolarTemplates templates(random_points(9, 6, 7, nphi, 81), 7, nphi);
    const auto images = normal({4, 7, nphi}, dtype, 82);
    const auto options = MatchOptions().n_best(2).score(MatchScore::projection);
    const auto index = torch::tensor({0, 3, 8, 5}, torch::kInt64);
    const auto expected = rotation_scores(images, as_maps(templates, dtype), index, options);
    const auto best = match_templates(images, as_maps(templates, dtype), options).score;
    for (const auto isa : instruction_sets()) {
      const ForcedIsa forced(to_string(isa));
      CHECK(relative_error(rotation_scores(images, templates, index, options), expected) < tolerance<TestType>(1e-13, 2e-6));
      CHECK(relative_error(match_templates(images, templates, options).score, best) < tolerance<TestType>(1e-13, 2e-6));
    }
  }
}

TEMPLATE_TEST_CASE("few of many templates of points are those of all scores, whatever the image's range and the instruction set",
                   "[analysis][matching][quick]", float, double) {
  const auto dtype = dtype_of<TestType>();
  constexpr std::int64_t size = 300, nphi = 47;
  for (const std::int64_t most : {1, 9, 60}) {
    const PolarTemplates templates(random_points(size, most, 8, nphi, 201), 8, nphi);
    const auto noise = normal({6, 8, nphi}, dtype, 202);
    // Even noise, images that a few pixels rule, and ones of tiny and of no values at all.
    const auto images = at::cat({noise, noise.pow(7), 1e-30 * noise, at::zeros_like(noise)});
    for (const auto score : {MatchScore::correlation, MatchScore::projection, MatchScore::product}) {
      for (const std::int64_t keep : {size, std::int64_t{90}}) {
        const auto options = MatchOptions().score(score).keep(keep);
        const auto all = match_templates(images, templates, MatchOptions(options).n_best(size / 16 + 1));  // none is left out
        for (const auto isa : instruction_sets()) {
          const ForcedIsa forced(to_string(isa));
          const auto few = match_templates(images, templates, MatchOptions(options).n_best(4));
          CAPTURE(most, to_string(isa));
          CHECK(relative_error(few.score, all.score.narrow(1, 0, 4)) < tolerance<TestType>(1e-13, 2e-6));
          CHECK(same(few.index.narrow(0, 0, 12), all.index.narrow(0, 0, 12).narrow(1, 0, 4)));  // where scores differ
        }
      }
    }
  }
}

TEST_CASE("as many matches as there are templates at most", "[analysis][matching][quick]") {
  const PolarTemplates templates(normal({3, 5, 12}, torch::kFloat64, 91));
  const auto found = match_templates(normal({2, 5, 12}, torch::kFloat64, 92), templates, MatchOptions().n_best(10));
  CHECK(found.index.sizes() == at::IntArrayRef({2, 3}));
  CHECK((found.score.diff(1, 1) <= 0).all().item<bool>());
}

TEST_CASE("bad input of a match is refused with its value", "[analysis][matching][quick]") {
  const auto maps = normal({3, 5, 12}, torch::kFloat64, 95);
  const PolarTemplates templates(maps);
  const auto message = [&](const Tensor& image, const MatchOptions& options) {
    try {
      match_templates(image, templates, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const auto contains = [](const std::string& words) { return ContainsSubstring(words); };
  CHECK_THAT(message(maps[0].slice(1, 0, 11), {}), contains("(5, 11)"));
  CHECK_THAT(message(maps[0].to(torch::kFloat16), {}), contains("Half"));
  auto broken = maps[0].clone();
  broken[2][3] = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(match_templates(broken, templates), DataError);
  CHECK_THROWS_AS(PolarTemplates(broken.unsqueeze(0)), DataError);
  CHECK_THROWS_AS(PolarTemplates(maps[0]), ShapeError);
  CHECK_THAT(message(maps[0], MatchOptions().n_best(0)), contains("n_best 0"));
  CHECK_THAT(message(maps[0], MatchOptions().keep(0)), contains("0 templates"));
  CHECK_THAT(message(maps[0], MatchOptions().keep_fraction(1.5)), contains("1.5"));
  CHECK_THAT(message(maps[0], MatchOptions().weights(torch::ones({4}))), contains("(4)"));
  CHECK_THAT(message(maps[0], MatchOptions().weights(torch::zeros({5}))), contains("from 0 to 0"));
  CHECK_THAT(message(maps[0], MatchOptions().coarse_weights(torch::ones({6}))), contains("(6)"));
  CHECK_THAT(message(maps[0], MatchOptions().memory_budget(100)), contains("memory budget of 100 bytes"));
  CHECK_THROWS_AS(rotation_scores(maps, templates, torch::tensor({0, 1, 3}, torch::kInt64)), ValueError);
  CHECK_THROWS_AS(rotation_scores(maps, templates, torch::tensor({0, 1}, torch::kInt64)), ShapeError);
  const auto one = torch::ones({1, 1}, torch::kInt64);
  CHECK_THROWS_AS(PolarTemplates(PolarPoints{5 * one, one, torch::ones({1, 1})}, 5, 12), ValueError);
  CHECK_THROWS_AS(PolarTemplates(PolarPoints{one, one, torch::ones({1, 2})}, 5, 12), ShapeError);
  CHECK_THROWS_AS(PolarTemplates(PolarPoints{one, one, torch::full({1, 1}, INFINITY)}, 5, 12), DataError);
}
