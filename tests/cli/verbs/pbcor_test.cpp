#include "catch.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/isnan.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/primary_beam.h>
#include <mpol_cpp/io/fits.h>

#include "compare.h"
#include "program.h"
#include "random.h"
#include "verb_runs.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords coords(0.5, 64);

io::FitsOptions seen_by(const std::string& telescope) {
  Observation observation;
  observation.telescope = telescope;
  return io::FitsOptions().observation(observation).frequencies(at::tensor({230e9, 345e9}, torch::kFloat64));
}

Tensor sky() { return random_image(coords, 2, torch::kFloat64, 3).abs(); }

std::string write_sky(const Scratch& scratch, const io::FitsOptions& options = seen_by("ALMA")) {
  const auto path = scratch / "sky.fits";
  io::write_fits(path, sky(), coords, options);
  return path.string();
}

Tensor alma_beams(const SkyOffset& pointing = {}) {
  const auto beam = *PrimaryBeam::of_telescope("ALMA");
  return at::stack({beam.power(coords, pointing, 230e9), beam.power(coords, pointing, 345e9)});
}

}  // namespace

TEST_CASE("pbcor divides each channel by the beam of the header's telescope, and blanks what is beyond", "[cli][quick]") {
  const Scratch scratch;
  const auto summary = summary_of("pbcor", {write_sky(scratch), "--limit", "0.3"}, scratch / "out");
  const auto image = io::read_fits(scratch / "out" / "pbcor.fits");
  const auto beams = alma_beams();
  const auto known = beams >= 0.3;
  CHECK(image.unit == "Jy/pixel");
  CHECK(image.cube.isnan().equal(known.logical_not()));
  CHECK(relative_error(image.cube.masked_select(known), (sky() * coords.cell_area() / beams).masked_select(known)) < 1e-6);
  CHECK(relative_error(io::read_fits(scratch / "out" / "primary_beam.fits").cube, beams) < 1e-6);
  const auto of_beam = io::read_fits(scratch / "out" / "primary_beam.fits").history;
  REQUIRE(of_beam.size() == 2);  // the first says that the phase centre is unknown
  CHECK(of_beam[1] == "mpol pbcor: power of the primary beam, 12 m antennas of ALMA");
  CHECK(summary["beam"] == "12 m antennas of ALMA");
  const auto& channel = summary["channels"][1];
  CHECK(channel["frequency_hz"] == 345e9);
  CHECK(channel["fwhm_arcsec"].get<double>() == Approx(PrimaryBeam::of_telescope("ALMA")->fwhm(345e9)));
  CHECK(channel["flux_before_jy"].get<double>() == Approx((sky()[1].sum() * coords.cell_area()).item<double>()).epsilon(1e-5));
  CHECK(channel["flux_after_jy"].get<double>() == Approx(image.cube[1].nansum().item<double>()).epsilon(1e-5));
  CHECK(channel["blank_share"].get<double>() == Approx(1 - known[1].to(torch::kFloat64).mean().item<double>()));
  CHECK(std::filesystem::exists(scratch / "out" / "pbcor.png"));
}

TEST_CASE("pbcor takes its own work back, at any pointing, in blocks of channels and in Jy/beam", "[cli][quick]") {
  const Scratch scratch;
  auto header = seen_by("nobody's");
  header.unit(io::FitsUnit::jy_per_beam).beams({{1.5, 1, 0.3}});
  const auto image = write_sky(scratch, header);
  const std::vector<std::string> beam = {"--antenna-diameter", "12", "--offset-east",  "2",
                                         "--offset-north",     "-3", "--memory-limit", "0.001"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), beam.begin(), beam.end());
    return arguments;
  };
  summary_of("pbcor", with({image, "--limit", "0.01"}), scratch / "divided");
  const auto divided = (scratch / "divided" / "pbcor.fits").string();
  CHECK(io::read_fits(divided).unit == "Jy/beam");
  CHECK(io::read_fits(divided).beams.size() == 1);
  check_refusal({"pbcor", divided, "-o", (scratch / "again").string(), "--antenna-diameter", "12"}, 1,
                "divided by the primary beam already", scratch / "again");
  summary_of("pbcor", with({divided, "--mode", "multiply"}), scratch / "back");
  const auto back = io::read_fits(scratch / "back" / "apparent.fits");
  CHECK(relative_error(back.cube.masked_select(back.cube != 0), sky().masked_select(back.cube != 0)) < 1e-6);
  CHECK(((back.cube != 0).to(torch::kFloat64).mean() > 0.9).item<bool>());
}

TEST_CASE("pbcor says what it lacks", "[cli][quick]") {
  const Scratch scratch;
  const auto out = scratch / "out";
  check_refusal({"pbcor", write_sky(scratch, seen_by("CARMA")), "-o", out.string()}, 1,
                "is of the telescope CARMA, whose antennas are not known; give --antenna-diameter", out);
  check_refusal({"pbcor", write_sky(scratch, io::FitsOptions()), "-o", out.string()}, 1, "has no frequency", out);
  check_refusal({"pbcor", write_sky(scratch), "-o", out.string(), "--frequency-ghz", "100"}, 2, "the header of IMAGE has 230 GHz",
                out);
  check_refusal({"pbcor", write_sky(scratch), "-o", out.string(), "--fwhm", "20", "--antenna-diameter", "7"}, 2, "--fwhm", out);
  const auto summary = summary_of("pbcor", {write_sky(scratch, io::FitsOptions()), "--fwhm", "20"}, out);
  CHECK(summary["channels"][0]["fwhm_arcsec"].get<double>() == Approx(20));
  CHECK(summary["channels"][0]["frequency_hz"].is_null());
}

TEST_CASE("predict takes no image whose primary beam is taken out", "[cli][quick]") {
  const Scratch scratch;
  summary_of("pbcor", {write_sky(scratch)}, scratch / "out");
  check_refusal({"predict", (std::filesystem::path(MPOL_DATA_DIR) / "simulated_disc.npz").string(),
                 (scratch / "out" / "pbcor.fits").string(), "-o", (scratch / "predicted.npz").string()},
                1, "has the primary beam taken out", scratch / "predicted.npz");
}

TEST_CASE("blank pixels of an image are 0, which is said once", "[cli][quick]") {
  const Scratch scratch;
  auto cube = sky();
  cube.narrow(1, 0, 16).fill_(std::numeric_limits<double>::quiet_NaN());
  cube[1].fill_(std::numeric_limits<double>::quiet_NaN());
  const auto image = (scratch / "blank.fits").string();
  io::write_fits(image, cube, coords, seen_by("ALMA"));
  const auto run = run_mpol_here({"deproject", image, "-o", (scratch / "out").string()});
  CHECK(run.exit_code == 0);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names("has blank pixels (NaN), 25 % of a channel; they are taken as 0"));
  CHECK(relative_error(io::read_fits(scratch / "out" / "deprojected.fits").cube, cube.nan_to_num()) < 1e-5);
}

TEST_CASE("an observation that antennas dim is told, and pbcor has the flux again", "[cli]") {
  const Scratch scratch;
  const auto file = (scratch / "array.cfg").string(), vis = (scratch / "vis.npz").string();
  std::string array = "# observatory=ALMA\n";
  for (int i = 0; i < 20; ++i)
    array += fmt::format("{:.3f} {:.3f} 0 12\n", 25.0 * i * std::cos(2.4 * i), 25.0 * i * std::sin(2.4 * i));
  write_text(file, array);
  const std::vector<std::string> observed = {
      "simulate", "-o", vis, "--array", file, "--offset-east", "6", "--offset-north", "3", "--frequency-ghz", "345", "--quiet"};
  const auto image_of = [&](const std::vector<std::string>& simulate, const std::string& out) {
    REQUIRE(run_mpol_here(simulate).exit_code == 0);
    return run_mpol_here({"image", vis, "-o", (scratch / out).string(), "--json"});
  };
  auto dimmed = observed;
  dimmed.push_back("--primary-beam");
  const auto run = image_of(dimmed, "dimmed");
  REQUIRE(run.exit_code == 0);
  CHECK(run.err.find("off the middle of their primary beam") != std::string::npos);
  const auto summary = nlohmann::json::parse(run.out);
  const double expected =
      PrimaryBeam::of_telescope("ALMA")->power(at::tensor(std::hypot(6, 3), torch::kFloat64), 345e9).item<double>();
  CHECK(summary["primary_beam"]["power_at_flux"].get<double>() == Approx(expected).epsilon(0.03));
  CHECK(summary["primary_beam"]["antennas"] == "12 m antennas of ALMA");
  const auto corrected = summary_of("pbcor", {(scratch / "dimmed" / "image.fits").string()}, scratch / "corrected");
  std::filesystem::remove(vis);
  const auto whole = image_of(observed, "whole");
  REQUIRE(whole.exit_code == 0);
  CHECK(whole.err.find("primary beam") == std::string::npos);
  const auto without = nlohmann::json::parse(whole.out);
  CHECK(without["primary_beam"].is_null());
  CHECK(corrected["channels"][0]["flux_after_jy"].get<double>() == Approx(without["flux_jy"][0].get<double>()).epsilon(0.03));
}
