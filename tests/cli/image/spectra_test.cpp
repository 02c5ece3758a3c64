// Cubes whose channels know of each other, on the command line.
#include "catch.h"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>

#include "observation.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

TEST_CASE("regularizers of spectra weigh a cube: fused as eager, said and recorded, and not where they are off", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(4));
  const auto image = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> line = {"image", data,      "-o",     (scratch / out).string(), "--cell-size", "0.1", "--npix",
                                     "32",    "--dtype", "float64"};
    line.insert(line.end(), more.begin(), more.end());
    const auto run = run_mpol_here(line);
    CAPTURE(out, run.err);
    REQUIRE(run.exit_code == 0);
    return json::parse(read_text(scratch / out / "summary.json"));
  };
  const auto cube = [&](const std::string& out) { return io::read_fits(scratch / out / "image.fits").cube.to(torch::kFloat64); };
  const auto bends = [](const Tensor& x) {
    return (x.narrow(0, 0, 2) - 2 * x.narrow(0, 1, 2) + x.narrow(0, 2, 2)).square().sum().item<double>();
  };

  const auto plain = image("plain", {"--optimizer", "adam", "--epochs", "60", "--sparsity", "0"});
  for (const auto* name : {"group-sparsity", "spectral-smoothness"}) {
    CAPTURE(name);
    const auto option = std::string("--") + name;
    const auto weighed = image(name, {"--optimizer", "adam", "--epochs", "60", option, "3U"});
    CHECK(weighed["step"] == "fused");
    const auto column = weighed["lambda"].begin().key();
    CHECK(weighed["lambda"].size() == 1);
    CHECK(weighed["lambda"][column]["how"] == "noise units");
    CHECK(weighed["loss"][column].get<double>() > 0);
    CHECK(read_text(scratch / name / "run.toml").find(std::string(name) + " = \"3U\"") != std::string::npos);
    CHECK(read_text(scratch / "plain" / "run.toml").find(std::string("\n") + name + " = ") == std::string::npos);
    const auto eager =
        image(std::string(name) + "-eager", {"--optimizer", "adam", "--epochs", "60", option, "3U", "--step", "eager"});
    CHECK(eager["loss"]["total"].get<double>() == Approx(weighed["loss"]["total"].get<double>()).epsilon(1e-9));
    const auto again = run_mpol_here(
        {"image", "--config", (scratch / name / "run.toml").string(), "-o", (scratch / "again").string(), "--overwrite"});
    CHECK(again.exit_code == 0);
    CHECK(torch::equal(cube("again"), cube(name)));
  }
  CHECK(bends(cube("spectral-smoothness")) < 0.8 * bends(cube("plain")));
  CHECK(cube("group-sparsity").sum().item<double>() < cube("plain").sum().item<double>());

  // These are convex: the optimum, whatever the start.
  for (const auto* name : {"group-sparsity", "spectral-smoothness", "tv-channel"}) {
    const auto option = std::string("--") + name;
    const auto converged = image(std::string(name) + "-optimum", {option, "1U", "--sparsity", "3U", "--tv", "3U"});
    CHECK(converged["optimizer"] == "pogm");
    CHECK(converged["optimizer_reason"] == "every term is convex and known");
    CHECK(converged["converged"] == true);
    CHECK(converged["gap"].get<double>() >= 0);
    const auto other = image(std::string(name) + "-flat", {option, "1U", "--sparsity", "3U", "--tv", "3U", "--start", "base:-3"});
    CHECK(other["loss"]["total"].get<double>() == Approx(converged["loss"]["total"].get<double>()).epsilon(1e-3));
  }
}
