#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/sky_unit.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "compare.h"
#include "observation.h"
#include "program.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

const GridCoords predicted_grid(0.1, 32);

std::string write_model(const Scratch& scratch, std::int64_t nchan) {
  const auto path = scratch / ("model" + std::to_string(nchan) + ".fits");
  io::write_fits(path, random_image(predicted_grid, nchan, torch::kFloat64, 3), predicted_grid);
  return path.string();
}

}  // namespace

TEST_CASE("predict writes model and residual at the data's own points", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto given = io::read_npz(data);
  for (const std::int64_t nchan : {1, 2}) {
    const auto image = write_model(scratch, nchan);
    const auto out = (scratch / ("out" + std::to_string(nchan) + ".npz")).string();
    const auto run = run_mpol_here({"predict", data, image, "-o", out, "--dtype", "float64", "--json"});
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    std::map<std::string, Tensor> arrays;
    for (const auto* key : {"uu", "vv", "weight", "data", "model", "residual"}) arrays[key] = io::read_npz_array(out, key);
    const auto sky = io::brightness_of(io::read_fits(image), image).expand({2, 32, 32}).contiguous();
    const auto expected = direct_visibilities(sky, predicted_grid, given.baselines(), 2);
    CHECK(relative_error(arrays.at("model"), expected) < 1e-8);
    CHECK(relative_error(arrays.at("residual"), given.data() - expected) < 1e-8);
    CHECK(same(arrays.at("data"), given.data()));
    const double chi_squared = ((given.data() - expected).abs().square() * given.weights()).sum().item<double>();
    CHECK_THAT(json::parse(run.out)["chi_squared_per_visibility"].get<double>(), WithinRel(chi_squared / 2400, 1e-7));
    CHECK(same(io::read_npz(out).weights(), given.weights()));
  }
}

TEST_CASE("the prediction of a fitted image has the chi squared of the fit", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto fit = run_mpol_here(short_run(data, scratch / "fit", {"--likelihood", "exact", "--epochs", "60", "--json"}));
  INFO(fit.err);
  REQUIRE(fit.exit_code == 0);
  const auto image = (scratch / "fit" / "image.fits").string(), out = (scratch / "out.npz").string();
  const auto run = run_mpol_here({"predict", data, image, "-o", out, "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(json::parse(run.out)["chi_squared"].get<double>(),
             WithinRel(json::parse(fit.out)["chi_squared"].get<double>(), 1e-4));
  CHECK(io::read_npz_array(out, "model").scalar_type() == torch::kComplexFloat);
}

TEST_CASE("predict refuses what it cannot use, in one line, and leaves nothing", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2)), image = write_model(scratch, 2);
  const auto out = (scratch / "out.npz").string();
  const auto refuse = [&](const std::vector<std::string>& arguments, int code, const std::string& words) {
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
    CHECK_FALSE(std::filesystem::exists(out));
  };
  refuse({"predict", data, image}, 2, "--out");
  refuse({"predict", data, "-o", out}, 2, "IMAGE");
  refuse({"predict", "-o", out}, 2, "DATA");
  refuse({"predict", data, image, "-o", data}, 1, "there already");
  refuse({"predict", data, (scratch / "missing.fits").string(), "-o", out}, 1, "missing.fits");
  refuse({"predict", (scratch / "missing.npz").string(), image, "-o", out}, 1, "missing.npz");
  refuse({"predict", data, write_model(scratch, 3), "-o", out}, 1, "channels");
  const auto nowhere = (scratch / "absent" / "out.npz").string();
  refuse({"predict", (scratch / "missing.npz").string(), image, "-o", nowhere}, 1, "create its folder first");  // seen at once
  refuse({"predict", data, image, "-o", out, "--cell-size", "3"}, 1, "cell");
  refuse({"predict", data, image, "-o", out, "--dtype", "float16"}, 2, "dtype");
}
