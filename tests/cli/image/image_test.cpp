#include "catch.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include <mpol_cpp/io/fits.h>

#include "observation.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& [name, ignored] : object.items()) names.push_back(name);
  return names;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("image leaves the promised files and nothing else", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto out = scratch / "new";
  const auto run = run_mpol_here(short_run(data, out / "disc"));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  auto names = names_in(out / "disc");
  std::erase(names, "figures");  // gnuplot's scripts, where gnuplot is
  CHECK(names == std::vector<std::string>{"checkpoint.safetensors", "dirty.fits", "history.csv", "image.fits", "image.png",
                                          "report.html", "report.png", "residual.fits", "run.toml", "summary.json",
                                          "summary.png"});
  CHECK(lines_of(run.out).size() >= 4);
  CHECK(lines_of(run.out).size() <= 8);  // the last one warns of the small field
}

TEST_CASE("summary.json has exactly the keys of the contract, and they agree with each other", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto run = run_mpol_here(short_run(data, scratch / "out", {"--json", "--seed", "7", "--threads", "1"}));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out == read_text(scratch / "out" / "summary.json"));
  const auto summary = json::parse(run.out);
  CHECK(keys(summary) == std::vector<std::string>{"center_arcsec",
                                                  "chi_squared",
                                                  "chi_squared_per_visibility",
                                                  "choices",
                                                  "converged",
                                                  "device",
                                                  "device_reason",
                                                  "dtype",
                                                  "epochs",
                                                  "filled_share",
                                                  "flux_jy",
                                                  "gap",
                                                  "instruction_set",
                                                  "lambda",
                                                  "likelihood",
                                                  "loss",
                                                  "memory_bytes",
                                                  "n_cells",
                                                  "n_visibilities",
                                                  "noise",
                                                  "normalizer",
                                                  "optimizer",
                                                  "optimizer_reason",
                                                  "peak_signal_to_noise",
                                                  "primary_beam",
                                                  "reduced_chi_squared",
                                                  "residual",
                                                  "scatter",
                                                  "seconds",
                                                  "seed",
                                                  "step",
                                                  "step_reason",
                                                  "stop_reason",
                                                  "threads",
                                                  "versions",
                                                  "warnings",
                                                  "why_no_errors"});
  CHECK(keys(summary["loss"]) == std::vector<std::string>{"nll", "sparsity", "total", "tv"});
  CHECK(keys(summary["scatter"]) == std::vector<std::string>{"imag", "real"});
  CHECK(keys(summary["seconds"]) == std::vector<std::string>{"gridding", "reading", "start", "total", "training", "writing"});
  CHECK(summary["likelihood"] == "gridded");
  CHECK(summary["chi_squared_per_visibility"].get<double>() > 0);
  CHECK(summary["n_visibilities"] == 1200);
  CHECK(summary["normalizer"] == summary["n_cells"]);
  CHECK(summary["flux_jy"].size() == 2);
  CHECK(summary["epochs"] == 10);
  CHECK(summary["stop_reason"] == "epochs");
  CHECK(summary["optimizer"] == "adam");
  CHECK(summary["optimizer_reason"] == "asked for");
  CHECK(summary["converged"] == false);
  CHECK(summary["gap"].is_null());
  CHECK(summary["device"] == "cpu");
  CHECK(summary["dtype"] == "float64");
  CHECK(summary["step"] == "fused");
  CHECK(summary["step_reason"] == "the fastest one, and it applies");
  CHECK(summary["device_reason"] == "asked for");
  CHECK(summary["warnings"].is_array());
  CHECK(summary["threads"] == 1);
  CHECK(summary["seed"] == 7);
  const double cells = summary["n_cells"], chi_squared = summary["chi_squared"], nll = summary["loss"]["nll"];
  CHECK_THAT(chi_squared / (2 * cells), WithinRel(nll, 1e-12));
  CHECK_THAT(summary["reduced_chi_squared"].get<double>(), WithinRel(nll, 1e-12));
  const double sum = nll + summary["loss"]["sparsity"].get<double>() + summary["loss"]["tv"].get<double>();
  CHECK_THAT(summary["loss"]["total"].get<double>(), WithinRel(sum, 1e-12));
}

TEST_CASE("history.csv holds the loss before each update with 17 digits", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol_here(short_run(data, scratch / "out", {"--start", "base:-3"})).exit_code == 0);
  const auto lines = lines_of(read_text(scratch / "out" / "history.csv"));
  REQUIRE(lines.size() == 11);
  CHECK(lines[0] == "epoch,total,nll,sparsity,tv,learning_rate");
  double last = 0;
  for (std::size_t row = 1; row < lines.size(); ++row) {
    std::istringstream cells(lines[row]);
    std::vector<double> values;
    for (std::string cell; std::getline(cells, cell, ',');) values.push_back(std::stod(cell));
    REQUIRE(values.size() == 6);
    CHECK(values[0] == static_cast<double>(row - 1));
    CHECK_THAT(values[2] + values[3] + values[4], WithinRel(values[1], 1e-13));
    CHECK(values[5] == 0.3);
    if (row > 1) CHECK(values[1] < last);
    last = values[1];
  }
  const auto summary = json::parse(read_text(scratch / "out" / "summary.json"));
  CHECK(summary["loss"]["total"].get<double>() < last);
}

TEST_CASE("the image shows the source where it is, in Jy/pixel", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  REQUIRE(run_mpol_here(short_run(data, scratch / "out", {"--epochs", "150"})).exit_code == 0);
  const auto image = mpol::io::read_fits(scratch / "out" / "image.fits");
  CHECK(image.unit == "Jy/pixel");
  CHECK_THAT(image.cell_size, WithinRel(0.1, 1e-6));
  CHECK_THAT(image.cube[0].sum().item<double>(), WithinAbs(1.0, 0.05));
  // The centroid of the source itself: what is fainter lies all over the field.
  const auto pixels = image.cube[0].where(image.cube[0] > 0.2 * image.cube[0].max(), torch::zeros({}, torch::kFloat64));
  const double flux = pixels.sum().item<double>();
  const auto rows = torch::arange(32, torch::kFloat64).reshape({32, 1}), columns = torch::arange(32, torch::kFloat64);
  const double north = ((pixels * rows).sum().item<double>() / flux - image.reference_row) * 0.1;
  const double east = (image.reference_column - (pixels * columns).sum().item<double>() / flux) * 0.1;
  CHECK_THAT(east, WithinAbs(0.5, 0.05));
  CHECK_THAT(north, WithinAbs(-0.3, 0.05));
  const auto residual = mpol::io::read_fits(scratch / "out" / "residual.fits");
  const auto dirty = mpol::io::read_fits(scratch / "out" / "dirty.fits");
  CHECK(residual.unit == "Jy/beam");
  CHECK(dirty.beams.size() == 1);
  CHECK(residual.cube.abs().max().item<double>() < 0.1 * dirty.cube.max().item<double>());
}

TEST_CASE("quiet says nothing", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto run = run_mpol_here(short_run(data, scratch / "out", {"--quiet"}));
  CHECK(run.exit_code == 0);
  CHECK(run.out.empty());
  CHECK(run.err.empty());
}

TEST_CASE("channels become a cube, one image, or files of their own", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(3));
  REQUIRE(run_mpol_here(short_run(data, scratch / "cube")).exit_code == 0);
  CHECK(mpol::io::read_fits(scratch / "cube" / "image.fits").cube.size(0) == 3);
  REQUIRE(run_mpol_here(short_run(data, scratch / "continuum", {"--mode", "continuum"})).exit_code == 0);
  CHECK(mpol::io::read_fits(scratch / "continuum" / "image.fits").cube.size(0) == 1);
  REQUIRE(run_mpol_here(short_run(data, scratch / "some", {"--channels", "0,2", "--split-channels"})).exit_code == 0);
  const auto names = names_in(scratch / "some");
  for (const auto* stem : {"image", "dirty", "residual"}) {
    CHECK(std::count(names.begin(), names.end(), std::string(stem) + "_0001.fits") == 1);
    CHECK(std::count(names.begin(), names.end(), std::string(stem) + "_0002.fits") == 0);
    CHECK(std::count(names.begin(), names.end(), std::string(stem) + ".fits") == 0);
  }
}

TEST_CASE("every form of --start and a mask are followed", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation());
  const auto first_loss = [&](const std::string& out) { return lines_of(read_text(scratch / out / "history.csv")).at(1); };
  REQUIRE(run_mpol_here(short_run(data, scratch / "base", {"--epochs", "60"})).exit_code == 0);
  const auto image = (scratch / "base" / "image.fits").string();
  const std::vector<std::string> starts = {"auto", "base:-3", "base:-5", "flat:0.01", "dirty", image};
  std::vector<std::string> losses;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto out = "start" + std::to_string(i);
    const auto run = run_mpol_here(short_run(data, scratch / out, {"--start", starts[i], "--epochs", "2"}));
    INFO(starts[i] << " " << run.err);
    REQUIRE(run.exit_code == 0);
    losses.push_back(first_loss(out));
  }
  CHECK(losses[0] == first_loss("base"));
  CHECK(std::set<std::string>(losses.begin(), losses.end()).size() == starts.size());

  const mpol::GridCoords coords(0.1, 32);
  auto mask = torch::zeros({32, 32}, torch::kFloat64);
  mask.slice(0, 8, 20).slice(1, 4, 20).fill_(1);
  mpol::io::write_fits(scratch / "mask.fits", mask, coords);
  REQUIRE(run_mpol_here(short_run(data, scratch / "masked", {"--mask", (scratch / "mask.fits").string()})).exit_code == 0);
  const auto masked = mpol::io::read_fits(scratch / "masked" / "image.fits").cube[0];
  CHECK(masked[0][0].item<double>() == 0);
  CHECK(masked[25][10].item<double>() == 0);
  CHECK(masked[12][10].item<double>() > 0);
}

TEST_CASE("every regulariser, optimiser and normalisation runs", "[cli]") {
  const Scratch scratch;
  const auto data = write_observation(scratch / "vis.npz", small_observation(2));
  const auto run = run_mpol_here(short_run(data, scratch / "all",
                                           {"--tsv",
                                            "1e-4",
                                            "--entropy",
                                            "1e-4",
                                            "--tv-channel",
                                            "1e-4",
                                            "--edge-clamp",
                                            "1e-4",
                                            "--psd",
                                            "1e-17",
                                            "--psd-length",
                                            "0.2",
                                            "--start",
                                            "base:-3",
                                            "--uv-sparsity",
                                            "1e-6",
                                            "--uv-sparsity-q-max",
                                            "5e5",
                                            "--normalize",
                                            "visibilities",
                                            "--group-sparsity",
                                            "1e-4",
                                            "--spectral-smoothness",
                                            "1e-4",
                                            "--wavelets",
                                            "1e-4"}));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(lines_of(read_text(scratch / "all" / "history.csv"))[0] ==
        "epoch,total,nll,sparsity,tv,tsv,entropy,tv_channel,edge_clamp,psd,uv_sparsity,group_sparsity,spectral_smoothness,"
        "wavelets,learning_rate");
  CHECK(run_mpol_here(short_run(data, scratch / "sgd", {"--optimizer", "sgd", "--learning-rate", "0.01", "--normalize", "none"}))
            .exit_code == 0);
  CHECK(run_mpol_here(short_run(data, scratch / "lbfgs", {"--optimizer", "lbfgs", "--learning-rate", "1", "--epochs", "3"}))
            .exit_code == 0);
  const auto stopped =
      run_mpol_here(short_run(data, scratch / "stop", {"--epochs", "3000", "--stop-relative", "1e-2:5", "--json"}));
  REQUIRE(stopped.exit_code == 0);
  CHECK(json::parse(stopped.out)["stop_reason"] == "converged");
  CHECK(json::parse(stopped.out)["epochs"] < 3000);
}

TEST_CASE("LibTorch's threads spin for a moment only, unless the user says otherwise", "[cli]") {
  const auto run = run_mpol({"--version"}, {.environment = {"OMP_DISPLAY_ENV=verbose"}});
  CHECK(run.exit_code == 0);
  CHECK(run.error_names("GOMP_SPINCOUNT = '2000'"));
  const auto passive = run_mpol({"--version"}, {.environment = {"OMP_DISPLAY_ENV=verbose", "OMP_WAIT_POLICY=PASSIVE"}});
  CHECK(passive.error_names("OMP_WAIT_POLICY = 'PASSIVE'"));
  CHECK(passive.error_names("GOMP_SPINCOUNT = '0'"));
  const auto active = run_mpol({"--version"}, {.environment = {"OMP_DISPLAY_ENV=verbose", "OMP_WAIT_POLICY=ACTIVE"}});
  CHECK(active.error_names("OMP_WAIT_POLICY = 'ACTIVE'"));
  const auto counted = run_mpol({"--version"}, {.environment = {"OMP_DISPLAY_ENV=verbose", "GOMP_SPINCOUNT=7000"}});
  CHECK(counted.error_names("GOMP_SPINCOUNT = '7000'"));
}
