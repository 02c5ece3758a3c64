#include "catch.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <random>

#include <nlohmann/json.hpp>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "program.h"
#include "set_writer.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

constexpr double flux = 0.7, east = 0.8, north = -0.5;  // Jy, arcsec

/// Noiseless data of a point source, in CASA's sign convention: hands of two windows, with some rows that must not be read.
TestSet point_source(std::size_t rows = 1500) {
  TestSet set;
  set.windows = {{{230e9, 231e9}, {9, 12}, 5}, {{245e9}, {5, 8}, 5}};
  std::mt19937 random(7);
  std::normal_distribution<double> normal(0, 100);  // m
  const double l = east * units::arcsec, m = north * units::arcsec;
  for (std::size_t i = 0; i < rows; ++i) {
    TestRow row;
    row.window = static_cast<int>(i % 2);
    row.antenna1 = static_cast<int>(i % 5);
    row.antenna2 = 10;
    row.uvw = {normal(random), normal(random), 0};
    for (const double frequency : set.windows[i % 2].frequencies) {
      const double phase = 2 * std::numbers::pi * frequency / units::speed_of_light * (row.uvw[0] * l + row.uvw[1] * m);
      const std::complex<float> value(static_cast<float>(flux * std::cos(phase)), static_cast<float>(flux * std::sin(phase)));
      row.data.insert(row.data.end(), {value * 1.1F, value * 0.9F});  // polarised: I is the mean of hands of one weight
    }
    row.weight = {50, 50};
    if (i % 10 == 3) row.flag_row = true, row.data.assign(row.data.size(), {1000, 0});
    if (i % 10 == 6) row.antenna1 = 10, row.data.assign(row.data.size(), {1000, 0});
    set.rows.push_back(row);
  }
  return set;
}

/// Where an image is brightest: arcsec to the East and to the North, and the value.
struct Peak {
  double east, north, value;
  double flux;  ///< of the pixels up to two beside it
};

Peak peak_of(const fs::path& path) {
  const auto image = io::read_fits(path);
  const auto columns = image.cube.size(-1);
  const auto at = image.cube[0].argmax().item<std::int64_t>();
  const auto row = at / columns, column = at % columns;
  const auto flux_there = image.cube[0].narrow(0, row - 2, 5).narrow(1, column - 2, 5).sum().item<double>();
  return {image.cell_size * (image.reference_column - static_cast<double>(column)),
          image.cell_size * (static_cast<double>(row) - image.reference_row), image.cube.max().item<double>(), flux_there};
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("a source off centre in a measurement set is imaged where it is, with its flux", "[cli]") {
  const Scratch scratch;
  const auto set = (scratch / "obs.ms").string();
  write_set(set, point_source());
  const std::vector<std::string> grid = {"--cell-size", "0.1", "--npix", "64"};
  const auto dirty = run_mpol_here(with({"dirty", set, "-o", (scratch / "dirty").string(), "--scatter-check", "off"}, grid));
  INFO(dirty.err);
  REQUIRE(dirty.exit_code == 0);
  const auto peak = peak_of(scratch / "dirty/dirty.fits");
  CHECK_THAT(peak.east, WithinAbs(east, 1e-6));
  CHECK_THAT(peak.north, WithinAbs(north, 1e-6));
  CHECK_THAT(peak.value, WithinRel(flux, 0.01));

  const auto image =
      run_mpol_here(with({"image", set, "-o", (scratch / "disc").string(), "--scatter-check", "off", "--sparsity", "0"}, grid));
  INFO(image.err);
  REQUIRE(image.exit_code == 0);
  const auto fitted = peak_of(scratch / "disc/image.fits");
  CHECK_THAT(fitted.east, WithinAbs(east, 1e-6));
  CHECK_THAT(fitted.north, WithinAbs(north, 1e-6));
  const auto summary = json::parse(read_text(scratch / "disc/summary.json"));
  CHECK_THAT(fitted.flux, WithinRel(flux, 0.05));
  const auto& reading = summary["reading"][0];
  CHECK(reading["kept"] == 1800);
  CHECK(reading["dropped"]["flagged_rows"] == 150);
  CHECK(reading["dropped"]["autocorrelations"] == 300);
  CHECK(reading["windows"].size() == 2);

  const auto mirrored =
      run_mpol_here(with({"dirty", set, "-o", (scratch / "mirrored").string(), "--conjugate", "--scatter-check", "off"}, grid));
  REQUIRE(mirrored.exit_code == 0);
  CHECK_THAT(peak_of(scratch / "mirrored/dirty.fits").east, WithinAbs(-east, 1e-6));
}

TEST_CASE("Stokes Q of a set is imaged as such, exported as such, and not predicted into hands", "[cli]") {
  const Scratch scratch;
  const auto set = (scratch / "obs.ms").string();
  write_set(set, point_source());
  const std::vector<std::string> q = {"--stokes", "Q", "--spw", "0"};  // XX 1.1, YY 0.9 times the flux
  const std::vector<std::string> grid = {"--cell-size", "0.1", "--npix", "64", "--scatter-check", "off"};
  const auto out = [&scratch](const std::string& name) { return (scratch / name).string(); };
  const auto run = [&](std::vector<std::string> words) {
    const auto outcome = run_mpol_here(words);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
  };
  run(with(with({"dirty", set, "-o", out("dirty")}, grid), q));
  const auto peak = peak_of(scratch / "dirty/dirty.fits");
  CHECK_THAT(peak.east, WithinAbs(east, 1e-6));
  CHECK_THAT(peak.value, WithinRel(0.1 * flux, 0.01));
  run(with(with({"image", set, "-o", out("image"), "--sparsity", "0"}, grid), q));
  CHECK_THAT(peak_of(scratch / "image/image.fits").north, WithinAbs(north, 1e-6));
  for (const auto* name : {"dirty/dirty.fits", "image/image.fits", "image/dirty.fits", "image/residual.fits"}) {
    INFO(name);
    CHECK(io::read_fits(scratch / name).observation.stokes == Stokes::q);
    const auto bytes = read_text(scratch / name);
    CHECK(std::stod(bytes.substr(bytes.find("CRVAL4  =") + 9, 30)) == 2);
  }
  const auto summary = json::parse(read_text(scratch / "image/summary.json"));
  CHECK(summary["stokes"] == "Q");
  CHECK(summary["reading"][0]["stokes"] == "Q");
  run(with({"export", set, "-o", out("q.npz")}, q));
  CHECK(io::read_npz(scratch / "q.npz").observation().stokes == Stokes::q);
  run(with({"export", set, "-o", out("i.npz")}, {"--spw", "0"}));
  CHECK_FALSE(io::NpzReader(scratch / "i.npz").contains("stokes"));

  const auto joined = run_mpol_here(with({"dirty", out("q.npz"), "--more-data", out("i.npz"), "-o", out("both")}, grid));
  CHECK(joined.exit_code == 1);
  CHECK(joined.error_names("of Stokes Q and of Stokes I"));
  const auto columns = run_mpol_here(with({"predict", set, out("image/image.fits"), "--column", "MODEL_DATA"}, q));
  CHECK(columns.exit_code == 1);
  CHECK(columns.error_names("take a model of Stokes I"));
  CHECK_FALSE(has_column(set, "MODEL_DATA"));
}

TEST_CASE("a model is predicted into a set, and nothing else of it changes", "[cli]") {
  const Scratch scratch;
  const auto set = (scratch / "obs.ms").string();
  write_set(set, point_source(300));
  const auto before = complex_column(set, "DATA");
  const GridCoords coords(0.1, 64);
  auto sky = torch::zeros({64, 64}, torch::kFloat64);
  sky[32 - 5][31 - 8] = flux / (0.1 * 0.1);
  io::write_fits(scratch / "model.fits", sky, coords);
  const auto run = run_mpol_here({"predict", set, (scratch / "model.fits").string(), "--column", "MODEL_DATA",
                                  "--residual-column", "LEFT_OVER", "--dtype", "float64"});
  INFO(run.err << run.out);
  REQUIRE(run.exit_code == 0);
  CHECK(complex_column(set, "DATA") == before);
  const auto model = complex_column(set, "MODEL_DATA"), residual = complex_column(set, "LEFT_OVER");
  REQUIRE(model.size() == before.size());
  double worst = 0;
  for (std::size_t i = 0; i < before.size(); i += 2) {
    if (std::abs(before[i]) > 10) continue;  // bad rows
    worst = std::max(worst, static_cast<double>(std::abs(0.5F * (before[i] + before[i + 1]) - model[i])));
    CHECK(residual[i] == before[i] - model[i]);
  }
  CHECK(worst < 1e-5);

  const auto refused = run_mpol_here({"predict", set, (scratch / "model.fits").string(), "--column", "DATA"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.error_lines().size() == 1);
  CHECK(run_mpol_here({"predict", set, (scratch / "model.fits").string()}).exit_code == 2);
}

TEST_CASE("a set made from the bundled observation gives its numbers", "[cli]") {
  const Scratch scratch;
  // Written from the bundled visibilities: rows of three windows, values conjugated, weights shared by two hands.
  const io::NpzReader bundled(fs::path(MPOL_DATA_DIR) / "hd142527_band9.npz");
  const auto u = bundled.read("uu"), v = bundled.read("vv"), data = bundled.read("data"), weight = bundled.read("weight");
  TestSet set;
  set.windows = {{{708.889e9}}, {{693.874e9}}, {{691.457e9}}};
  constexpr std::int64_t part = 4000;
  for (std::int64_t i = 0; i < part; ++i) {
    TestRow row;
    row.window = static_cast<int>(i / 1500);
    const double metres = units::speed_of_light / set.windows[static_cast<std::size_t>(row.window)].frequencies[0];
    row.uvw = {u[i].item<double>() * metres, v[i].item<double>() * metres, 0};
    const auto value = data[i].item<c10::complex<float>>();
    row.data.assign(2, {value.real(), -value.imag()});
    row.weight.assign(2, weight[i].item<float>() / 2);
    set.rows.push_back(row);
  }
  write_set(scratch / "hd.ms", set);
  const auto out = (scratch / "vis.npz").string();
  const auto run = run_mpol_here({"export", (scratch / "hd.ms").string(), "-o", out});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const io::NpzReader exported(out);
  CHECK(torch::allclose(exported.read("uu"), u.narrow(0, 0, part).to(torch::kFloat64), 1e-12));
  CHECK(torch::allclose(exported.read("vv"), v.narrow(0, 0, part).to(torch::kFloat64), 1e-12));
  CHECK(torch::allclose(exported.read("data").flatten(), data.narrow(0, 0, part), 1e-6));
  CHECK(torch::allclose(exported.read("weight").flatten(), weight.narrow(0, 0, part), 1e-6));
  CHECK(exported.read("block").sum().item<std::int64_t>() == 1500 + 2 * 1000);
}

TEST_CASE("sets that cannot be read end in one line", "[cli][quick]") {
  const Scratch scratch;
  auto two_fields = point_source(20);
  two_fields.fields = {{"target", 1, 0.2}, {"calibrator", 2, 0.2}};
  two_fields.rows[1].field = 1;
  write_set(scratch / "two.ms", two_fields);
  write_foreign_table(scratch / "foreign.ms");
  write_set(scratch / "lost.ms", point_source(20));
  fs::remove_all(scratch / "lost.ms/SPECTRAL_WINDOW");
  write_set(scratch / "good.ms", point_source(20));
  const auto ends = [&](const std::string& name, int code, const std::string& words, const std::vector<std::string>& more = {}) {
    const auto run = run_mpol_here(with({"inspect", (scratch / name).string()}, more));
    INFO(name << ": " << run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
  };
  ends("two.ms", 1, "1 calibrator (1 rows)");
  ends("foreign.ms", 1, "no measurement set");
  ends("lost.ms", 1, "lost.ms");
  ends("good.ms", 2, "--select", {"--select", "NO_COLUMN == 1"});
  ends("good.ms", 2, "--spw", {"--spw", "7"});
  ends("good.ms", 2, "channel 5", {"--channels", "5"});
  ends("good.ms", 2, "NO_SUCH", {"--column", "NO_SUCH"});
  ends("good.ms", 2, "--uv-unit", {"--uv-unit", "m"});
  ends("good.ms", 1, "make no cube", {"--mode", "cube"});
  const auto exported = run_mpol_here({"export", (scratch / "foreign").string(), "-o", (scratch / "x.npz").string()});
  CHECK(exported.exit_code == 1);
  CHECK_FALSE(fs::exists(scratch / "x.npz"));
}

TEST_CASE("averages of a set are as long as asked for, keep the weight, and say what they cost", "[cli]") {
  const Scratch scratch;
  const auto path = (scratch / "obs.ms").string();
  TestSet set;
  set.windows = {{{230e9, 230.01e9, 230.02e9, 230.03e9}, {9, 12}, 5}};
  const double l = east * units::arcsec, m = north * units::arcsec;
  for (int time = 0; time < 20; ++time) {
    for (int baseline = 0; baseline < 3; ++baseline) {
      TestRow row;
      row.antenna2 = 1 + baseline;
      row.time = 2.0 * time;
      row.uvw = {100.0 * (baseline + 1) + 0.01 * time, 40.0 - 0.02 * time, 0};
      for (const double frequency : set.windows[0].frequencies) {
        const double phase = 2 * std::numbers::pi * frequency / units::speed_of_light * (row.uvw[0] * l + row.uvw[1] * m);
        row.data.insert(row.data.end(), 2,
                        {static_cast<float>(flux * std::cos(phase)), static_cast<float>(flux * std::sin(phase))});
      }
      row.weight = {3, 3};
      row.flags.assign(8, false);
      if (time == 7) row.flags[0] = true, row.data[0] = 1e6;  // of both hands one
      set.rows.push_back(row);
    }
  }
  write_set(path, set);
  const auto out = (scratch / "vis.npz").string();
  const auto run = run_mpol_here({"export", path, "-o", out, "--average-time", "10", "--average-channels", "2"});
  INFO(run.err << run.out);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out.find("averaged    10 s, 2 channels: ") != std::string::npos);
  const auto weights = io::read_npz_array(out, "weight"), data = io::read_npz_array(out, "data");
  CHECK(weights.numel() == 3 * 4 * 2);
  CHECK(weights.sum().item<double>() == 6 * (3 * 20 * 4 - 3));
  const auto u = io::read_npz_array(out, "uu"), v = io::read_npz_array(out, "vv");
  const auto phase = -2 * std::numbers::pi * (u * l + v * m);
  CHECK((data - flux * torch::polar(torch::ones_like(phase), phase)).abs().max().item<double>() < 2e-3 * flux);

  const auto dirty = run_mpol_here({"dirty", path, "-o", (scratch / "dirty").string(), "--cell-size", "0.1", "--npix", "64",
                                    "--average-time", "10", "--scatter-check", "off"});
  INFO(dirty.err << dirty.out);
  REQUIRE(dirty.exit_code == 0);
  CHECK(dirty.out.find("smearing    averaging costs up to ") != std::string::npos);
  const auto reading = json::parse(read_text(scratch / "dirty/summary.json"))["reading"][0];
  CHECK(reading["averaging"]["seconds"] == 10);
  CHECK(reading["averaging"]["one_percent_arcsec"].get<double>() > 10);
  CHECK(reading["samples"] == 240);
  const auto without_times = run_mpol_here({"dirty", out, "-o", (scratch / "again").string(), "--average-time", "10"});
  CHECK(without_times.exit_code == 2);
  CHECK(without_times.error_names("--average-time"));
}
