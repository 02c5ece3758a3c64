#include "catch.h"

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/combined_beam.h>
#include <mpol_cpp/io/fits.h>

#include "compare.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords convolved_grid(0.05, 96);

/// A model of one point source off centre, 0.7 Jy.
std::string write_point(const Scratch& scratch) {
  auto sky = torch::zeros({1, 96, 96}, torch::kFloat64);
  sky[0][40][55] = 0.7 / convolved_grid.cell_area();
  io::write_fits(scratch / "point.fits", sky, convolved_grid);
  return (scratch / "point.fits").string();
}

/// Convolves an image; the result's path.
std::string convolve(const Scratch& scratch, const std::string& image, const std::string& name,
                     const std::vector<std::string>& beam) {
  std::vector<std::string> arguments = {"convolve", image, "-o", (scratch / name).string(), "--quiet"};
  arguments.insert(arguments.end(), beam.begin(), beam.end());
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  return (scratch / name / "convolved.fits").string();
}

void check_beam(const io::FitsImage& image, const Beam& beam) {
  REQUIRE(image.beams.size() == 1);
  CHECK_THAT(image.beams[0].major, WithinRel(beam.major, 1e-6));
  CHECK_THAT(image.beams[0].minor, WithinRel(beam.minor, 1e-6));
  const double turn = std::remainder(image.beams[0].position_angle - beam.position_angle, units::pi);
  if (beam.major > beam.minor * 1.001) CHECK_THAT(turn, WithinAbs(0, 1e-6));
}

void check_refusal(const Scratch& scratch, const std::string& image, const std::vector<std::string>& beam,
                   const std::string& words) {
  std::vector<std::string> arguments = {"convolve", image, "-o", (scratch / "refused").string()};
  arguments.insert(arguments.end(), beam.begin(), beam.end());
  const auto run = run_mpol_here(arguments);
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names(words));
  CHECK_FALSE(std::filesystem::exists(scratch / "refused"));
}

}  // namespace

TEST_CASE("an image that has a beam has both after another convolution", "[cli][quick]") {
  const Scratch scratch;
  const auto point = write_point(scratch);
  SECTION("round beams of 0.4 and 0.3 arcsec make one of 0.5") {
    const auto twice = convolve(scratch, convolve(scratch, point, "first", {"--bmaj", "0.4"}), "second", {"--bmaj", "0.3"});
    const auto once = convolve(scratch, point, "once", {"--bmaj", "0.5"});
    check_beam(io::read_fits(twice), {0.5, 0.5, 0});
    CHECK(relative_error(io::read_fits(twice).cube, io::read_fits(once).cube) < 1e-5);
    CHECK_THAT(io::read_fits(twice).cube.max().item<double>(), WithinRel(0.7, 1e-5));
  }
  SECTION("ellipses at angles") {
    const Beam a{0.4, 0.25, 30 * units::degree}, b{0.35, 0.2, -70 * units::degree};
    const auto first = convolve(scratch, point, "first", {"--bmaj", "0.4", "--bmin", "0.25", "--bpa", "30"});
    const auto second = convolve(scratch, first, "second", {"--bmaj", "0.35", "--bmin", "0.2", "--bpa", "-70"});
    check_beam(io::read_fits(second), convolved_beam(a, b));
    CHECK_THAT(io::read_fits(second).cube.max().item<double>(), WithinRel(0.7, 1e-5));
  }
  SECTION("--beam-of is the beam to reach") {
    const auto target = convolve(scratch, point, "target", {"--bmaj", "0.6", "--bmin", "0.45", "--bpa", "20"});
    const auto first = convolve(scratch, point, "first", {"--bmaj", "0.4", "--bmin", "0.3", "--bpa", "80"});
    const auto reached = convolve(scratch, first, "reached", {"--beam-of", target});
    check_beam(io::read_fits(reached), {0.6, 0.45, 20 * units::degree});
    CHECK(relative_error(io::read_fits(reached).cube, io::read_fits(target).cube) < 1e-5);
    check_refusal(scratch, target, {"--beam-of", first}, "must be wider everywhere than IMAGE's own beam");
    check_refusal(scratch, first, {"--beam-of", first}, "must be wider everywhere than IMAGE's own beam");
  }
}

TEST_CASE("a beam that pixels cannot sample is refused, one that they barely sample warned of", "[cli][quick]") {
  const Scratch scratch;
  const auto point = write_point(scratch);
  check_refusal(scratch, point, {"--bmaj", "0.01"}, "0.2 of the pixels of 0.05\" wide");
  check_refusal(scratch, point, {"--bmaj", "0.3", "--bmin", "0.04"}, "beam: 0.3\" x 0.04\"");
  const auto run = run_mpol_here({"convolve", point, "-o", (scratch / "narrow").string(), "--bmaj", "0.08"});
  CHECK(run.exit_code == 0);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names("its width is not exact below 2 pixels"));
}

TEST_CASE("a residual in another beam than the result is warned of", "[cli][quick]") {
  const Scratch scratch;
  const auto point = write_point(scratch);
  const auto residual = convolve(scratch, point, "residual", {"--bmaj", "0.3"});
  const auto warned =
      run_mpol_here({"convolve", point, "-o", (scratch / "other").string(), "--bmaj", "0.5", "--residual", residual});
  CHECK(warned.exit_code == 0);
  CHECK(warned.error_names("Jy per beam of 0.3\" x 0.3\""));
  const auto same_beam =
      run_mpol_here({"convolve", point, "-o", (scratch / "same").string(), "--beam-of", residual, "--residual", residual});
  CHECK(same_beam.exit_code == 0);
  CHECK(same_beam.err.empty());
}
