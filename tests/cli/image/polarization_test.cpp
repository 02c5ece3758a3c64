// Data of one polarisation: what is made of them says so, to the last file.
#include "catch.h"

#include <limits>

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

/// The small observation as one of Stokes Q.
std::string write_q_observation(const std::filesystem::path& path) {
  write_observation(path, small_observation());
  auto visibilities = io::read_npz(path);
  auto observation = visibilities.observation();
  observation.stokes = Stokes::q;
  visibilities.set_observation(observation);
  io::write_npz(path, visibilities);
  return path.string();
}

Stokes stokes_in(const std::filesystem::path& path) { return io::read_fits(path).observation.stokes; }

Outcome run_to_end(const std::vector<std::string>& arguments) {
  auto outcome = run_mpol_here(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return outcome;
}

/// A number of a FITS header; NaN where it is not there.
double number_in_header(const std::filesystem::path& path, const std::string& key) {
  const auto bytes = read_text(path);
  const auto card = (key + "        ").substr(0, 8) + "=";
  for (std::size_t place = 0; bytes.compare(place, 4, "END ") != 0; place += 80)
    if (bytes.compare(place, card.size(), card) == 0) return std::stod(bytes.substr(place + card.size(), 70));
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

TEST_CASE("images of Stokes Q are labelled so, and what is made of them too", "[cli]") {
  const Scratch scratch;
  const auto data = write_q_observation(scratch / "q.npz");
  const auto out = [&scratch](const std::string& name) { return (scratch / name).string(); };
  run_to_end(short_run(data, scratch / "image"));
  for (const auto* name : {"image.fits", "dirty.fits", "residual.fits"}) CHECK(stokes_in(scratch / "image" / name) == Stokes::q);
  CHECK(json::parse(read_text(scratch / "image/summary.json"))["stokes"] == "Q");
  CHECK(read_text(scratch / "image/report.html").find("Stokes Q") != std::string::npos);

  run_to_end({"dirty", data, "-o", out("dirty"), "--cell-size", "0.1", "--npix", "32"});
  for (const auto* name : {"dirty.fits", "beam.fits"}) CHECK(stokes_in(scratch / "dirty" / name) == Stokes::q);
  CHECK(json::parse(read_text(scratch / "dirty/summary.json"))["stokes"] == "Q");

  const auto image = out("image/image.fits");
  run_to_end({"convolve", image, "-o", out("convolve"), "--bmaj", "0.5"});
  CHECK(stokes_in(scratch / "convolve/convolved.fits") == Stokes::q);
  run_to_end({"deproject", image, "-o", out("deproject")});
  CHECK(stokes_in(scratch / "deproject/deprojected.fits") == Stokes::q);
  run_to_end({"compare", image, image, "-o", out("compare")});
  CHECK(stokes_in(scratch / "compare/difference.fits") == Stokes::q);
  run_to_end({"polar", image, "-o", out("polar")});
  CHECK(number_in_header(scratch / "polar/polar.fits", "NAXIS") == 4);
  CHECK(number_in_header(scratch / "polar/polar.fits", "CRVAL4") == 2);
  const auto predicted = run_to_end({"predict", data, image, "-o", out("predicted.npz")});
  CHECK_FALSE(predicted.error_names("Stokes"));
  CHECK(io::read_npz(scratch / "predicted.npz").observation().stokes == Stokes::q);
  run_to_end({"simulate", "-o", out("simulated.npz"), "--sky", image, "--integration", "3600", "--antennas", "8",
              "--longest-baseline", "500"});
  CHECK(io::read_npz(scratch / "simulated.npz").observation().stokes == Stokes::q);
}

TEST_CASE("Stokes I is what data without a word of it are, and their files are those of before", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  run_to_end(short_run(data, scratch / "image"));
  CHECK(stokes_in(scratch / "image/image.fits") == Stokes::i);
  CHECK_FALSE(json::parse(read_text(scratch / "image/summary.json")).contains("stokes"));
  run_to_end({"polar", (scratch / "image/image.fits").string(), "-o", (scratch / "polar").string()});
  CHECK(number_in_header(scratch / "polar/polar.fits", "NAXIS") == 3);
}

TEST_CASE("data of two polarisations make no image together, and are compared with a warning", "[cli]") {
  const Scratch scratch;
  const auto q = write_q_observation(scratch / "q.npz"), i = write_observation(scratch / "i.npz", small_observation());
  const auto joined = run_mpol_here(short_run(q, scratch / "both", {"--more-data", i}));
  CHECK(joined.exit_code == 1);
  CHECK(joined.error_lines().size() == 1);
  CHECK(joined.error_names("Stokes Q"));
  CHECK(joined.error_names("Stokes I"));
  CHECK_FALSE(std::filesystem::exists(scratch / "both/image.fits"));

  run_to_end(short_run(i, scratch / "image"));
  const auto other =
      run_to_end({"predict", q, (scratch / "image/image.fits").string(), "-o", (scratch / "predicted.npz").string()});
  CHECK(other.error_names("is of Stokes I, the data of Stokes Q"));
}
