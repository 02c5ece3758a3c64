#include <sstream>

#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "observation.h"
#include "picture.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords plot_coords(0.1, 16);

std::string write_image(const Scratch& scratch, const std::string& name, double scale = 1) {
  const auto r = at::hypot(plot_coords.sky_x(), plot_coords.sky_y());
  io::write_fits(scratch / name, scale * at::stack({at::exp(-r), at::exp(-2 * r)}), plot_coords,
                 io::FitsOptions().beams({{.major = 0.3, .minor = 0.2, .position_angle = 0.4}}));
  return (scratch / name).string();
}

std::vector<std::string> plus(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Draws with `mpol plot`, which must succeed, and returns the picture.
Picture draw(const Scratch& scratch, const std::vector<std::string>& arguments, const std::string& name = "figure.png") {
  const auto run = run_mpol_here(plus(plus({"plot"}, arguments), {"-o", (scratch / name).string(), "--overwrite"}));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.err.empty());
  return read_png(scratch / name);
}

/// An error is one line that names what is wrong, and leaves no figure.
void check_refused(const Scratch& scratch, int exit_code, const std::string& words, const std::vector<std::string>& arguments) {
  const auto out = scratch / "refused.png";
  const auto run = run_mpol_here(plus(plus({"plot"}, arguments), {"-o", out.string()}));
  INFO(run.err);
  CHECK(run.exit_code == exit_code);
  CHECK(run.error_lines().size() == 1);
  CHECK(run.error_names("mpol plot: "));
  CHECK(run.error_names(words));
  CHECK_FALSE(std::filesystem::exists(out));
}

std::string script(const Scratch& scratch, const std::string& stem = "figure") {
  return read_text(scratch / "figures" / (stem + ".gp"));
}

}  // namespace

TEST_CASE("plot explains itself", "[cli]") {
  const auto help = run_mpol_here({"plot", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.find("Example:\n  mpol plot") != std::string::npos);
}

TEST_CASE("plot draws what suits its input", "[cli]") {
  const Scratch scratch;
  const auto image = write_image(scratch, "image.fits"), other = write_image(scratch, "other.fits", 1.2);
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  CHECK(draw(scratch, {image}).width == 2 * 560);
  CHECK(script(scratch).find("channel 1") != std::string::npos);
  CHECK(script(scratch).find("polygon") != std::string::npos);
  CHECK(draw(scratch, {image, other}).width == 3 * 620);
  CHECK(script(scratch).find("other.fits − image.fits") != std::string::npos);
  CHECK(draw(scratch, {data}).width == 3 * 560);
  CHECK(script(scratch).find("amplitude") != std::string::npos);
  CHECK(draw(scratch, {data, "--kind", "uv"}).width == 760);
  CHECK(draw(scratch, {data, "--kind", "residuals"}).width == 2 * 620);
  CHECK(draw(scratch, {data, "--kind", "split", "--folds", "2", "--cell-size", "0.1", "--npix", "32"}).width == 3 * 560);
  CHECK(script(scratch).find("fold 1") != std::string::npos);
  CHECK(draw(scratch, {data, "--kind", "split", "--split", "random", "--folds", "3", "--cell-size", "0.1", "--npix", "32"})
            .height == 2 * 540);
}

TEST_CASE("plot draws the folders of other verbs", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol_here(short_run(data, scratch / "run")).exit_code == 0);
  CHECK(draw(scratch, {(scratch / "run").string()}).width == 2 * 620);
  CHECK(script(scratch).find("'loss, learning rate 0.") != std::string::npos);
  CHECK(draw(scratch, {(scratch / "run").string(), "--kind", "image"}).width == 900);

  const auto image = write_image(scratch, "image.fits");
  for (const auto& [verb, out, more] : std::vector<std::tuple<std::string, std::string, std::vector<std::string>>>{
           {"profile", "rings", {image}},
           {"profile", "bins", {data, "--inclination", "20"}},
           {"weights", "weights", {data, "--cell-size", "0.1", "--npix", "32"}},
           {"dirty", "dirty", {data, "--cell-size", "0.1", "--npix", "32"}},
           {"deproject", "face_on", {image}}}) {
    INFO(verb << " " << out);
    const auto run = run_mpol_here(plus(plus({verb}, more), {"-o", (scratch / out).string(), "--quiet"}));
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    CHECK(draw(scratch, {(scratch / out).string()}).width > 400);
  }
}

TEST_CASE("plot's options reach the figure", "[cli]") {
  const Scratch scratch;
  const auto image = write_image(scratch, "image.fits");
  draw(scratch, {image, "--channels", "1", "--no-beam", "--half-width", "0.35", "--norm", "asinh", "--title", "one channel"});
  CHECK(script(scratch).find("channel 0") == std::string::npos);
  CHECK(script(scratch).find("polygon") == std::string::npos);
  CHECK(script(scratch).find("asinh(x/0.02)") != std::string::npos);
  CHECK(script(scratch).find("7 x 7 pixels") != std::string::npos);
  CHECK(script(scratch).find("one channel") != std::string::npos);
  draw(scratch, {image, "--norm", "symmetric", "--upper", "0.004"});
  CHECK(script(scratch).find("set cbrange [-0.004:0.004]") != std::string::npos);
  draw(scratch, {image});
  CHECK(script(scratch).find("sequential.palette") != std::string::npos);
  const auto both = (scratch / "both.fits").string();
  io::write_fits(both, torch::linspace(-0.75, 1, 64, torch::kFloat64).reshape({1, 8, 8}), GridCoords(0.1, 8),
                 io::FitsOptions().unit(io::FitsUnit::jy_per_beam));
  draw(scratch, {both});
  CHECK(script(scratch).find("diverging.palette") != std::string::npos);
  CHECK(script(scratch).find("set cbrange [-1:1]") != std::string::npos);
  draw(scratch, {both, "--norm", "linear"});
  CHECK(script(scratch).find("set cbrange [-0.75:1]") != std::string::npos);
  draw(scratch, {both, "--lower", "0"});
  CHECK(script(scratch).find("set cbrange [0:1]") != std::string::npos);
  draw(scratch, {image, "--lower", "-1", "--upper", "2", "--norm", "power", "--gamma", "0.3"});
  CHECK(script(scratch).find("x**0.3") != std::string::npos);
}

TEST_CASE("plot says what is wrong in one line, and draws nothing", "[cli]") {
  const Scratch scratch;
  const auto image = write_image(scratch, "image.fits");
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto text = [&](const std::string& name, const std::string& content) {
    write_text(scratch / name, content);
    return (scratch / name).string();
  };
  check_refused(scratch, 2, "INPUT", {});
  check_refused(scratch, 2, "--kind", {image, image, "--kind", "uv"});
  check_refused(scratch, 2, "--kind", {image, "--kind", "comparison"});
  check_refused(scratch, 2, "--norm", {image, "--norm", "rainbow"});
  check_refused(scratch, 2, "--lower", {image, "--lower", "2", "--upper", "1"});
  check_refused(scratch, 2, "--lower", {image, "--norm", "symmetric", "--lower", "0"});
  check_refused(scratch, 2, "--gamma", {image, "--gamma", "nan"});
  check_refused(scratch, 2, "--npix", {data, "--npix", "31"});
  check_refused(scratch, 1, "is not there", {(scratch / "no.fits").string()});
  check_refused(scratch, 1, "is empty", {text("empty.csv", "")});
  check_refused(scratch, 1, "nothing that can be drawn", {text("foreign.csv", "a,b\n1,2\n")});
  check_refused(scratch, 1, "line 3", {text("broken.csv", "epoch,total\n0,1\n1,x\n")});
  check_refused(scratch, 1, "line 2 has 1 values", {text("short.csv", "epoch,total\n0\n")});
  check_refused(scratch, 1, "holds no values", {text("none.csv", "epoch,total\n")});
  check_refused(scratch, 1, "no column", {text("half.csv", "epoch,nll\n0,1\n")});
  check_refused(scratch, 1, "channels", {text("gap.csv", "channel,radius_arcsec,mean,scatter,error,pixels\n1,0,0,0,0,1\n")});
  check_refused(scratch, 1, "channels", {text("far.csv", "channel,radius_arcsec,mean,scatter,error,pixels\n1e300,0,0,0,0,1\n")});
  check_refused(scratch, 2, "channel 7", {image, "--channels", "7"});
  check_refused(scratch, 1, "mpol plot", {text("cut.fits", read_text(scratch / "image.fits").substr(0, 3000))});
  check_refused(scratch, 1, "mpol plot", {text("cut.npz", read_text(scratch / "vis.npz").substr(0, 300))});
  std::filesystem::create_directory(scratch / "folder");
  check_refused(scratch, 1, "nothing that can be drawn", {(scratch / "folder").string()});

  const auto refused_name = [&](const std::filesystem::path& out, int exit_code, const std::string& words) {
    const auto run = run_mpol_here({"plot", image, "-o", out.string()});
    INFO(run.err);
    CHECK(run.exit_code == exit_code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
  };
  refused_name(scratch / "figure.jpg", 2, "PNG");
  refused_name(scratch / "no" / "figure.png", 1, "folder is not there");
  refused_name(text("old.png", "an older file"), 1, "--overwrite");
  CHECK(read_text(scratch / "old.png") == "an older file");
  CHECK_FALSE(std::filesystem::exists(scratch / "no"));
}

TEST_CASE("inspect tells what the memory of a fit is for", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto run = run_mpol_here({"inspect", data, "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto grid = nlohmann::json::parse(run.out)["grid"];
  double sum = 0;
  for (const auto& part : grid["fit_memory_parts"]) sum += part.get<double>();
  CHECK(grid["fit_memory_parts"].size() >= 3);
  CHECK(sum == Approx(grid["fit_memory_bytes"].get<double>()));
  const auto words = run_mpol_here({"inspect", data}).out;
  CHECK(words.find(grid["fit_memory"].get<std::string>()) != std::string::npos);
}

TEST_CASE("profile averages visibilities by deprojected baseline", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto out = scratch / "out";
  const auto run = run_mpol_here({"profile", data, "-o", out.string(), "--inclination", "40", "--position-angle", "30",
                                  "--offset-east", "0.2", "--bin-width", "10", "--max-baseline", "200", "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto summary = nlohmann::json::parse(run.out);
  CHECK(summary["n_bins"] == 20);
  CHECK(summary["n_channels"] == 2);
  std::vector<double> edges;
  for (int i = 0; i <= 20; ++i) edges.push_back(1e4 * i);
  const auto expected =
      radial_v(io::read_npz(data), {.inclination = 40 * units::degree, .position_angle = 30 * units::degree, .offset_east = 0.2},
               RadialVisibilityOptions().edges(edges));
  std::istringstream table(read_text(out / "profile.csv"));
  std::string line;
  std::getline(table, line);
  CHECK(line == "channel,q_lambda,real,imag,real_error,imag_error,samples");
  for (std::int64_t c = 0; c < 2; ++c) {
    for (std::int64_t i = 0; i < 20; ++i) {
      REQUIRE(std::getline(table, line));
      double q = 0, real = 0, imag = 0, real_error = 0, imag_error = 0;
      long long channel = 0, samples = 0;
      REQUIRE(std::sscanf(line.c_str(), "%lld,%lf,%lf,%lf,%lf,%lf,%lld", &channel, &q, &real, &imag, &real_error, &imag_error,
                          &samples) == 7);
      CHECK(channel == c);
      CHECK(q == Approx(1e4 * (static_cast<double>(i) + 0.5)));
      const auto mean = expected.mean[c][i].item<c10::complex<double>>();
      CHECK(real == Approx(mean.real()));
      CHECK(imag == Approx(mean.imag()));
      CHECK(samples == expected.samples[c][i].item<std::int64_t>());
    }
  }
  CHECK_FALSE(std::getline(table, line));
  CHECK(read_png(out / "profile.png").width == 900);

  const auto refused = [&](const std::vector<std::string>& more, const std::string& words) {
    const auto outcome = run_mpol_here(plus({"profile", data, "-o", (scratch / "refused").string()}, more));
    INFO(outcome.err);
    CHECK(outcome.exit_code != 0);
    CHECK(outcome.error_lines().size() == 1);
    CHECK(outcome.error_names(words));
    CHECK_FALSE(std::filesystem::exists(scratch / "refused"));
  };
  refused({"--bin-width", "0"}, "--bin-width");
  refused({"--bin-width", "1e-9"}, "bins");
  refused({"--max-baseline", "1e-6"}, "--max-baseline");
  refused({"--channels", "5"}, "channel");
}
