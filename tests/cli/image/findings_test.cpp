#include "catch.h"

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/report/findings.h>

#include "observation.h"
#include "program.h"

using namespace mpol::cli;

namespace {

/// A fit of which there is nothing to say.
FitFacts good_fit() {
  FitFacts facts;
  facts.cell_size = 0.1;
  facts.npix = 128;
  facts.finest_fringe = 0.5;
  facts.peak = 2;
  facts.edge_peak = 0.01;
  facts.flux = facts.flux_of_floor = 1;
  facts.data = {.brightest = 80, .darkest = 20, .on_any_scale = 90};
  facts.dirty_noise = 1e-4;
  facts.residual_peak = 4.5;
  facts.outside = {.east = 10, .north = 0, .value = 0.004};
  facts.inside = {.east = 1, .north = 0, .value = 0.003};
  facts.wide_noise = 0.001;
  facts.wide_width = 30;
  facts.residuals = {.samples = 5000, .mean = 0, .standard_deviation = 1, .sigma_factor = 1, .beyond_four = 6e-5};
  facts.flux_seen = 0.95;
  facts.shortest = 2e4;
  return facts;
}

using Rule = std::optional<Finding> (*)(const FitFacts&);

/// A rule speaks of changed facts, and of no fit that is still moving where it judges the fit.
void check_rule(Rule rule, const std::function<void(FitFacts&)>& change, const std::string& words) {
  INFO(words);
  CHECK_FALSE(rule(good_fit()));
  auto facts = good_fit();
  change(facts);
  const auto finding = rule(facts);
  REQUIRE(finding);
  CHECK(finding->text().find(words) != std::string::npos);
  CHECK(finding->text().find(": ") != std::string::npos);
  CHECK_FALSE(findings(facts).empty());
  if (rule == coarse_cells) return;
  facts.settled = false;
  CHECK_FALSE(rule(facts));
}

}  // namespace

TEST_CASE("of a good fit there is nothing to say", "[cli][quick]") { CHECK(findings(good_fit()).empty()); }

TEST_CASE("each doubt about a fit has a rule that says it with a number", "[cli][quick]") {
  check_rule(
      nothing_stands_out,
      [](FitFacts& facts) {
        facts.data = {4.4, 4.1, 4.6};
      },
      "reaches 4.6 times its noise on any scale");
  check_rule(
      negative_source,
      [](FitFacts& facts) {
        facts.data = {12, 40, 40};
        facts.residual_peak = 20;
      },
      "reaches -40.0 times its noise, and 12.0 above");
  auto dark_rings = good_fit();  // which an image without negative pixels explains
  dark_rings.data = {12, 40, 40};
  CHECK_FALSE(negative_source(dark_rings));
  check_rule(
      dimmed_by_antennas,
      [](FitFacts& facts) { facts.primary_beam = {.antennas = "12 m antennas of ALMA", .fwhm = 16.9, .at_flux = 0.784}; },
      "at 78 % of its brightness, as it is off the middle of their primary beam, 16.9\" wide at half power (12 m antennas of "
      "ALMA)");
  check_rule(
      sky_not_flat,
      [](FitFacts& facts) {
        facts.flat_radius = 320;
        facts.flux_beyond_flat = 0.12;
      },
      "12 % of the flux is more than 320\" from the phase centre, where w terms, which are not corrected");
  check_rule(
      too_sharp_source,
      [](FitFacts& facts) {
        facts.sharp_residual = 25;
        facts.sharp_east = 0.3;
      },
      "25.0 sigma of it are left in the residual: --points auto");
  check_rule(
      sharper_than_pixels,
      [](FitFacts& facts) {
        facts.lengths = {.slope = 0.16, .error = 0.01, .explained = 900, .chi_squared = 4000, .of_empty = 1e6, .samples = 1700};
        facts.residual_peak = 9;
        facts.residual_east = -1;
      },
      "sharper than pixels of 0.1\" show: the longest baselines see 16 % more than the image, and chi^2/(2N) is 2.35");
  check_rule(
      channels_differ,
      [](FitFacts& facts) {
        facts.slope = {.index = 3, .error = 0.1, .lowest = 217e9, .highest = 233e9};
        facts.residual_peak = 9;
      },
      "frequency^3.00, +- 0.1: by 24 % between 217 and 233 GHz");
  check_rule(
      wrong_weights, [](FitFacts& facts) { facts.residuals.sigma_factor = 1.5; }, "too large by a factor of 2.25");
  check_rule(
      wrong_weights, [](FitFacts& facts) { facts.residuals.sigma_factor = 0.5; }, "too small by a factor of 4.00");
  check_rule(
      heavy_tails, [](FitFacts& facts) { facts.residuals.beyond_four = 0.02; }, "2 % of the residuals");
  check_rule(
      structure_left,
      [](FitFacts& facts) {
        facts.residual_peak = 9;
        facts.residual_east = -1.5;
        facts.residual_north = 0.5;
      },
      "9.0 sigma, 1.50\" West and 0.50\" North of the phase centre: smaller LAMBDA (mpol crossval chooses them)");
  check_rule(
      structure_left,
      [](FitFacts& facts) {
        facts.residual_peak = 9;
        facts.cross_validated = true;
      },
      "smaller LAMBDA (than cross-validation took) leave less");
  check_rule(
      shared_errors, [](FitFacts& facts) { facts.shared_noise = 1.6; }, "scatters 1.60 times more than errors of single");
  check_rule(
      touches_edge, [](FitFacts& facts) { facts.edge_peak = 0.5; }, "25 % of its peak at the edge of the field of 12.8\"");
  auto noisy = good_fit();
  noisy.edge_peak = 0.5;
  noisy.dirty_noise = 0.5 * std::pow(noisy.finest_fringe, 2) / 2.9;  // of which an edge holds 2.9 times as much in a fringe
  CHECK_FALSE(touches_edge(noisy));
  check_rule(
      flux_outside, [](FitFacts& facts) { facts.outside.value = -0.02; }, "20.0 sigma, 10.00\" East");
  check_rule(
      haze,
      [](FitFacts& facts) {
        facts.floor = 1e-3;
        facts.floor_flux = 0.4;
      },
      "40 % of the flux");
  check_rule(
      flux_below_error, [](FitFacts& facts) { facts.share_below_error = 0.62; }, "62 % of the image's flux lies where");
  check_rule(
      coarse_cells, [](FitFacts& facts) { facts.cell_size = 0.22; }, "only 2.3 across");
  check_rule(
      flux_not_measured, [](FitFacts& facts) { facts.flux_seen = 0.2; }, "see only 20 % of");
}

TEST_CASE("a run whose source is far from the phase centre, for its baselines, warns of w terms", "[cli]") {
  const mpol::testing::Scratch scratch;
  const auto warns = [&](const std::string& name, double scale) {  // of the sky
    auto arrays = mpol::testing::small_observation();
    for (const auto* axis : {"uu", "vv"}) arrays[axis] = arrays[axis] / scale;
    const auto data = mpol::testing::write_observation(scratch / (name + ".npz"), arrays);
    const auto run = mpol::testing::run_mpol_here(
        {"image", data, "-o", (scratch / name).string(), "--npix", "32", "--cell-size", std::to_string(0.1 * scale)});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return run.err.find("w terms, which are not corrected") != std::string::npos;
  };
  CHECK(warns("wide", 5e4));
  CHECK_FALSE(warns("narrow", 10));
}

TEST_CASE("a sharp place is told as a point where the residual is brightest there, else as pixels that are too coarse",
          "[cli][quick]") {
  auto facts = good_fit();
  facts.lengths = {.slope = 0.16, .error = 0.01, .explained = 900, .chi_squared = 4000, .of_empty = 1e6, .samples = 1700};
  facts.sharp_residual = 20;
  facts.residual_peak = 22;
  CHECK(too_sharp_source(facts));
  CHECK(too_sharp_source(facts)->remedy.find("--cell-size 0.05 --npix 256") != std::string::npos);
  CHECK_FALSE(sharper_than_pixels(facts));
  facts.residual_peak = 45;  // beside it
  CHECK(too_sharp_source(facts));
  facts.residual_east = 0.4;
  CHECK_FALSE(too_sharp_source(facts));
  REQUIRE(sharper_than_pixels(facts));
  CHECK(sharper_than_pixels(facts)->remedy.find("if it is a point") != std::string::npos);
  facts.residuals.sigma_factor = 1.8;
  CHECK_FALSE(wrong_weights(facts));
  facts.lengths->explained = 100;  // little of what is too much
  CHECK_FALSE(sharper_than_pixels(facts));
  CHECK(too_sharp_source(facts));
}

TEST_CASE("weights that are wrong in parts are told with the factor of each, instead of one for all", "[cli][quick]") {
  const auto part = [](const std::string& name, double sigma) {
    const mpol::ResidualStatistics statistics{
        .samples = 3000, .mean = 0, .standard_deviation = sigma, .sigma_factor = sigma, .beyond_four = 6e-5};
    return mpol::PartResiduals{.name = name, .samples = 3000, .weight = 1, .statistics = statistics};
  };
  const auto parts = [&](std::vector<double> sigmas) {
    auto facts = good_fit();
    for (std::size_t i = 0; i < sigmas.size(); ++i) facts.parts.push_back(part("spw " + std::to_string(i), sigmas[i]));
    return facts;
  };
  CHECK_FALSE(unequal_weights(parts({})));
  CHECK_FALSE(unequal_weights(parts({2})));
  CHECK_FALSE(unequal_weights(parts({1.5, 1.55})));  // all alike: wrong_weights() says so
  CHECK_FALSE(unequal_weights(parts({0.95, 1.1})));
  auto facts = parts({1, 2, 0.5});
  facts.residuals.sigma_factor = 1.4;
  const auto finding = unequal_weights(facts);
  REQUIRE(finding);
  CHECK(finding->text().find("spw 1 too large by a factor of 4.00, those of spw 2 too small by a factor of 4.00") !=
        std::string::npos);
  CHECK(finding->text().find("--fit-blocks weight") != std::string::npos);
  CHECK(finding->text().find("spw 0") == std::string::npos);
  CHECK_FALSE(wrong_weights(facts));
  const auto many = unequal_weights(parts({1, 2, 2, 2, 2, 2, 2}));
  REQUIRE(many);
  CHECK(many->text().find("2 more") != std::string::npos);
  facts.settled = false;
  CHECK_FALSE(unequal_weights(facts));
}

TEST_CASE("what one doubt explains is not told as another", "[cli][quick]") {
  auto noisy = good_fit();  // weights four times too large: peaks are of that noise
  noisy.residuals.sigma_factor = 2;
  noisy.residual_peak = 9;
  noisy.outside.value = 0.009;
  noisy.wide_noise = 0.002;  // as its map says
  CHECK(findings(noisy).size() == 1);
  noisy.weights_were_doubted = true;
  CHECK(findings(noisy).empty());
  auto shared = good_fit();  // peaks are of errors that are shared
  shared.shared_noise = 1.6;
  shared.residual_peak = 20;
  CHECK(findings(shared).size() == 1);
  CHECK(shared_errors(shared));
  auto outside = good_fit();  // a source out there is in all residuals
  outside.outside.value = 0.02;
  outside.residuals.sigma_factor = 100;
  outside.residuals.beyond_four = 0.04;
  outside.residual_peak = 12;
  outside.shared_noise = 3;
  CHECK(flux_outside(outside));
  CHECK(findings(outside).size() == 1);
  auto wild = good_fit();  // factors from the median would make the mean square worse
  wild.residuals.sigma_factor = 0.8;
  wild.residuals.standard_deviation = 1.4;
  wild.residuals.beyond_four = 0.04;
  CHECK(findings(wild).size() == 1);
  CHECK(heavy_tails(wild));
  auto inner = good_fit();  // sidelobes of what is left within the field
  inner.outside.value = 0.02;
  inner.inside.value = 0.03;
  CHECK_FALSE(flux_outside(inner));
  auto cells = good_fit();  // their averages are followed more closely than samples
  cells.of_cells = true;
  cells.residuals.sigma_factor = 0.4;
  CHECK(findings(cells).empty());
  auto student = good_fit();
  student.noise = mpol::NoiseModel::Kind::student;
  student.residuals.beyond_four = 0.05;
  CHECK(findings(student).empty());
  auto few = good_fit();
  few.residuals.samples = 20;
  few.residuals.sigma_factor = 2;
  few.residuals.beyond_four = 0.05;
  CHECK(findings(few).empty());
}

TEST_CASE("channels that differ are told where residuals show it, and explain what else these show", "[cli][quick]") {
  auto facts = good_fit();
  facts.slope = {.index = -3, .error = 0.1, .lowest = 90e9, .highest = 340e9};
  facts.slope_of_channels = true;
  CHECK(findings(facts).empty());  // nothing shows it
  facts.shared_noise = 2;
  facts.residual_peak = 30;
  facts.sharp_residual = 40;
  facts.residuals.sigma_factor = 5;
  facts.residuals.beyond_four = 0.05;
  REQUIRE(findings(facts).size() == 1);
  const auto text = channels_differ(facts)->text();
  CHECK(text.find("frequency^-3.00, +- 0.5: by a factor of 54") != std::string::npos);
  CHECK(text.find(": --fit-blocks amplitude --blocks channel takes") != std::string::npos);
  facts.slope_of_channels = false;
  CHECK(channels_differ(facts)->text().find(": --fit-blocks amplitude takes") != std::string::npos);
  facts.residuals.standard_deviation = 2;  // chi^2 is larger by 3e4 than it should be, of which a slope explains 900
  CHECK_FALSE(channels_differ(facts));
  CHECK(too_sharp_source(facts));
  facts.slope->error = 0.03;
  CHECK(channels_differ(facts));
  facts.slope->error = 0.2;  // five times that for the noise there is
  CHECK_FALSE(channels_differ(facts));
  facts.slope.reset();
  CHECK_FALSE(channels_differ(facts));
}

TEST_CASE("where nothing stands out, an image of noise is told as that alone", "[cli][quick]") {
  auto noise = good_fit();
  noise.data = {4.4, 4.1, 4.6};
  noise.edge_peak = 2;
  noise.flux_seen = 0.1;
  noise.floor_flux = 0.5;
  REQUIRE(findings(noise).size() == 1);
  CHECK(findings(noise)[0].text().find("a point of 0.0005 Jy, five times the noise, would have been seen") != std::string::npos);
  noise.data = {9, 9, 9};  // of noise that is twice what the weights say
  noise.edge_peak = noise.flux_seen = noise.floor_flux = 0;
  CHECK_FALSE(nothing_stands_out(noise));
  noise.residuals.sigma_factor = 2;
  CHECK(nothing_stands_out(noise));
  noise.of_cells = true;  // whose residuals do not tell the noise
  CHECK_FALSE(nothing_stands_out(noise));
  auto large = good_fit();
  large.data = {4, 4, 9};
  CHECK_FALSE(nothing_stands_out(large));
}

TEST_CASE("what no image of positive pixels can hold explains what is left, and weights are not doubted for it", "[cli][quick]") {
  auto fit = good_fit();
  fit.residuals.sigma_factor = 2;
  fit.residuals.beyond_four = 0.04;
  fit.residual_peak = 60;
  fit.shared_noise = 2;
  auto sharp = fit, negative = fit;
  sharp.sharp_residual = 30;
  REQUIRE(findings(sharp).size() == 1);
  CHECK(too_sharp_source(sharp));
  negative.data = {12, 40, 40};
  REQUIRE(findings(negative).size() == 1);
  CHECK(negative_source(negative));
  negative.data = {50, 40, 60};  // sidelobes of a bright source, but of polarised brightness both are real
  CHECK_FALSE(negative_source(negative));
  negative.may_be_negative = true;
  CHECK(negative_source(negative));
  negative.outside.value = 0.02;  // a source out there has sidelobes in here
  CHECK_FALSE(negative_source(negative));
}
