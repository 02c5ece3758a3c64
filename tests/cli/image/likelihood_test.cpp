#include "catch.h"

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/sky_unit.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/simulation/direct_visibilities.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

/// A run of ten epochs with a likelihood, which must succeed; what it says with --json.
json run_with(const std::string& likelihood, const std::string& data, const std::filesystem::path& out,
              std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--likelihood", likelihood, "--json"});
  const auto run = run_mpol_here(short_run(data, out, more));
  INFO(likelihood << " " << run.err);
  REQUIRE(run.exit_code == 0);
  return json::parse(run.out);
}

/// chi^2 of the loose visibilities of a written image, by direct sums.
double chi_squared_of_image(const std::filesystem::path& image, const std::string& data) {
  const auto file = mpol::io::read_fits(image);
  const auto visibilities = mpol::io::read_npz(data);
  const mpol::GridCoords coords(0.1, 32);
  const auto sky = mpol::io::brightness_of(file, image).expand({visibilities.nchan(), 32, 32}).contiguous();
  const auto model = mpol::direct_visibilities(sky, coords, visibilities.baselines(), visibilities.nchan());
  return ((visibilities.data() - model).abs().square() * visibilities.weights()).sum().item<double>();
}

}  // namespace

TEST_CASE("the exact likelihood is the default, and recorded", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto run = run_mpol_here({"image", data, "-o", (scratch / "out").string(), "--cell-size", "0.1", "--npix", "32",
                                  "--epochs", "3", "--device", "cpu", "--json"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const auto summary = json::parse(run.out);
  CHECK(summary["likelihood"] == "exact");
  CHECK(summary["optimizer"] == "pogm");
  CHECK(read_text(scratch / "out" / "run.toml").find("likelihood = \"exact\"") != std::string::npos);
}

TEST_CASE("a fit in batches sees all data in the end", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const std::string sampling = GENERATE("random", "compact", "uniform");
  const auto summary = run_with("loose", data, scratch / "batches", {"--batch-size", "200", "--sampling", sampling});
  CHECK(summary["likelihood"] == "loose");
  CHECK(summary["n_visibilities"] == 1200);
  CHECK_THAT(summary["chi_squared"].get<double>(),
             WithinRel(chi_squared_of_image(scratch / "batches" / "image.fits", data), 1e-4));
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--batch-size", "200"});
    return run_mpol_here(short_run(data, scratch / "refused", more));
  };
  CHECK(refused({"--likelihood", "exact"}).exit_code == 2);
  CHECK_THAT(refused({"--likelihood", "loose", "--optimizer", "lbfgs"}).err, ContainsSubstring("L-BFGS compares values"));
  const auto alone = run_mpol_here(short_run(data, scratch / "refused", {"--likelihood", "loose", "--sampling", sampling}));
  CHECK(alone.exit_code == 2);
  CHECK_THAT(alone.err, ContainsSubstring("add --batch-size"));
}

TEST_CASE("batches of size auto: every step sees all visibilities, as many at a time as memory holds", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(1, 24000));
  const auto at_once = run_with("loose", data, scratch / "at_once");
  const auto fits = run_with("loose", data, scratch / "fits", {"--batch-size", "auto"});
  CHECK(fits["loss"] == at_once["loss"]);  // in one piece, bit for bit
  CHECK(read_text(scratch / "fits" / "run.toml").find("batch-size = \"auto\"") != std::string::npos);
  const double limit = fits["memory_bytes"]["estimated"].get<double>() / 0x1p30 + 1e-4;
  auto words = short_run(data, scratch / "chunks", {"--likelihood", "loose", "--batch-size", "auto", "--json"});
  words.insert(words.end(), {"--memory-limit", std::to_string(limit)});
  const auto run = run_mpol_here(words);
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.err, ContainsSubstring("steps see all of them"));
  const auto chunks = json::parse(run.out);
  CHECK_THAT(chunks["chi_squared"].get<double>(), WithinRel(at_once["chi_squared"].get<double>(), 1e-4));
  CHECK(run_mpol_here(short_run(data, scratch / "bad", {"--likelihood", "loose", "--batch-size", "some"})).exit_code == 2);
  CHECK(run_mpol_here(short_run(data, scratch / "bad", {"--likelihood", "exact", "--batch-size", "auto"})).exit_code == 2);
  CHECK(run_mpol_here(short_run(data, scratch / "bad", {"--likelihood", "loose", "--batch-size", "auto", "--sampling", "random"}))
            .exit_code == 2);
}

TEST_CASE("deterministic operations are taken when asked for", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const std::string step = GENERATE("fused", "eager");
  const auto plain = run_with("gridded", data, scratch / "plain", {"--step", step});
  const auto asked = run_with("gridded", data, scratch / "asked", {"--step", step, "--deterministic"});
  CHECK_THAT(read_text(scratch / "asked" / "run.toml"), ContainsSubstring("deterministic = true"));
  CHECK(asked["loss"] == plain["loss"]);
}

TEST_CASE("kernels in files change nothing, and leave nothing", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto folder = scratch / "kernels";
  std::filesystem::create_directory(folder);
  run_with("exact", data, scratch / "memory");
  run_with("exact", data, scratch / "files", {"--kernel-folder", folder.string()});
  CHECK(read_text(scratch / "files" / "history.csv") == read_text(scratch / "memory" / "history.csv"));
  CHECK(std::filesystem::is_empty(folder));

  const auto refused = [&](const std::string& likelihood, const std::string& kernel_folder) {
    return run_mpol_here(short_run(data, scratch / "refused", {"--likelihood", likelihood, "--kernel-folder", kernel_folder}));
  };
  const auto missing = refused("exact", (scratch / "missing").string());
  CHECK(missing.exit_code == 1);
  CHECK_THAT(missing.err, ContainsSubstring("missing cannot hold") && ContainsSubstring("choose another folder"));
  const auto gridded = refused("gridded", folder.string());
  CHECK(gridded.exit_code == 2);
  CHECK_THAT(gridded.err, ContainsSubstring("leave --kernel-folder out"));
}

TEST_CASE("each likelihood says chi squared of the data on the saved image", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const std::string mode = GENERATE("cube", "continuum");
  json exact;
  for (const auto& likelihood : std::vector<std::string>{"exact", "loose", "gridded"}) {
    CAPTURE(likelihood, mode);
    const auto out = scratch / (likelihood + mode);
    const auto summary = run_with(likelihood, data, out, {"--mode", mode, "--epochs", "40"});
    if (likelihood == "exact") exact = summary;
    CHECK(summary["likelihood"] == likelihood);
    CHECK(summary["step"] == "fused");
    CHECK(summary["n_visibilities"] == 1200);
    CHECK(summary["n_cells"] == exact["n_cells"]);
    CHECK(summary["normalizer"].get<double>() == summary["n_cells"].get<double>());
    const double chi_squared = chi_squared_of_image(out / "image.fits", data), own = summary["chi_squared"];
    CHECK_THAT(summary["chi_squared_per_visibility"].get<double>(), WithinRel(chi_squared / 2400, 1e-5));
    CHECK_THAT(summary["loss"]["nll"].get<double>(), WithinRel(own / (2 * summary["normalizer"].get<double>()), 1e-12));
    if (likelihood == "gridded") {
      CHECK_THAT(summary["reduced_chi_squared"].get<double>(), WithinRel(own / (2 * summary["n_cells"].get<double>()), 1e-12));
    } else {
      CHECK_THAT(own, WithinRel(chi_squared, 1e-5));
      CHECK_THAT(summary["reduced_chi_squared"].get<double>(), WithinRel(own / 2400, 1e-12));
      CHECK_THAT(summary["loss"]["total"].get<double>(), WithinRel(exact["loss"]["total"].get<double>(), 1e-4));
    }
  }
}

TEST_CASE("the exact likelihood in float32 fits as in float64", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto single = run_with("exact", data, scratch / "single", {"--dtype", "float32", "--epochs", "60"});
  const auto precise = run_with("exact", data, scratch / "double", {"--epochs", "60"});
  CHECK_THAT(single["chi_squared"].get<double>(), WithinRel(precise["chi_squared"].get<double>(), 1e-4));
}

TEST_CASE("every option of a fit goes with every likelihood", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  auto mask = torch::zeros({32, 32}, torch::kFloat64);
  mask.slice(0, 8, 20).slice(1, 4, 20).fill_(1);
  mpol::io::write_fits(scratch / "mask.fits", mask, mpol::GridCoords(0.1, 32));
  for (const auto& likelihood : std::vector<std::string>{"exact", "loose"}) {
    const auto out = scratch / likelihood;
    const auto summary = run_with(likelihood, data, out,
                                  {"--mask", (scratch / "mask.fits").string(), "--start", "dirty", "--psd", "1e-12",
                                   "--psd-length", "0.2", "--normalize", "visibilities", "--epochs", "3"});
    CHECK(summary["normalizer"] == 600);
    const auto image = mpol::io::read_fits(out / "image.fits").cube[0];
    CHECK(image[0][0].item<double>() == 0);
    CHECK(image[12][10].item<double>() > 0);
    run_with(likelihood, data, scratch / (likelihood + "lbfgs"),
             {"--optimizer", "lbfgs", "--learning-rate", "1", "--epochs", "2"});
    run_with(likelihood, data, scratch / (likelihood + "eager"), {"--step", "eager", "--epochs", "2"});
  }
}

TEST_CASE("Student's noise is fitted, and says chi squared of the data beside it", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto student =
      run_with("loose", data, scratch / "student", {"--noise", "student", "--epochs", "40", "--start", "base:-3"});
  CHECK(student["step"] == "fused");
  CHECK(read_text(scratch / "student" / "run.toml").find("noise = \"student\"") != std::string::npos);
  const double chi_squared = chi_squared_of_image(scratch / "student" / "image.fits", data);
  CHECK_THAT(student["chi_squared_per_visibility"].get<double>(), WithinRel(chi_squared / 1200, 1e-5));
  CHECK(student["chi_squared"].get<double>() < chi_squared);

  const auto gaussian = run_with("loose", data, scratch / "gaussian");
  const auto nearly = run_with("loose", data, scratch / "nearly", {"--noise", "student", "--degrees-of-freedom", "1e9"});
  CHECK_THAT(nearly["loss"]["total"].get<double>(), WithinRel(gaussian["loss"]["total"].get<double>(), 1e-4));
}

TEST_CASE("the scatter of the data never refuses the likelihoods that need no cell averages", "[cli]") {
  const Scratch scratch;
  auto arrays = small_observation(1, 4000);
  arrays["weight"] = arrays["weight"] * 9;
  const auto data = write_observation(scratch / "vis.npz", arrays);
  for (const auto& likelihood : std::vector<std::string>{"exact", "loose", "gridded"}) {
    const auto run =
        run_mpol_here(short_run(data, scratch / likelihood, {"--likelihood", likelihood, "--scatter-check", "error"}));
    INFO(likelihood << " " << run.err);
    CHECK(run.exit_code == (likelihood == "gridded" ? 1 : 0));
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names("scatter"));
  }
}

TEST_CASE("--memory-limit knows what a likelihood takes", "[cli]") {
  const Scratch scratch;
  const auto missing = (scratch / "missing.npz").string();
  const auto refused_by_memory = [&](const std::string& likelihood) {
    const auto run = run_mpol_here(short_run(
        missing, scratch / "out", {"--npix", "1024", "--dtype", "float32", "--memory-limit", "0.5", "--likelihood", likelihood}));
    CHECK(run.exit_code == 1);
    return run.error_names("--memory-limit");
  };
  CHECK(refused_by_memory("exact"));
  CHECK_FALSE(refused_by_memory("gridded"));  // but for the missing file
}
