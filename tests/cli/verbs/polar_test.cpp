#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.h"

#include <ATen/ops/cat.h>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/io/fits.h>

#include "compare.h"
#include "counting_allocator.h"
#include "observation.h"
#include "picture.h"
#include "program.h"

using namespace mpol;
using namespace mpol::testing;
using nlohmann::json;

namespace {

std::vector<std::string> polar(const std::string& image, const std::filesystem::path& out, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"polar", image, "-o", out.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<std::string> with_geometry(std::vector<std::string> more) {
  more.insert(more.end(), tilted_disc_options.begin(), tilted_disc_options.end());
  return more;
}

/// Two channels of a lopsided ring in the plane of the disc, Jy/arcsec^2.
Tensor lopsided_ring() {
  const auto x = tilted_coords.sky_x() - tilted_disc.offset_east, y = tilted_coords.sky_y() - tilted_disc.offset_north;
  const double c = std::cos(tilted_disc.position_angle), s = std::sin(tilted_disc.position_angle);
  const auto minor = (x * c - y * s) / std::cos(tilted_disc.inclination), major = x * s + y * c;
  const auto plane = at::exp(-0.5 * ((at::hypot(minor, major) - 0.8) / 0.15).square()) *
                     (1 + 0.5 * at::cos(at::atan2(minor, major) - 75 * units::degree));
  return at::stack({plane, 2 * plane});
}

/// A FITS file as its bytes say, without any reader of the library: header values as they are written, and the pixels.
struct RawFits {
  std::map<std::string, std::string> header;
  std::vector<float> pixels;

  explicit RawFits(const std::filesystem::path& path) {
    const auto bytes = read_text(path);
    constexpr std::size_t card = 80, block = 2880;
    std::size_t place = 0;
    for (; bytes.compare(place, 4, "END ") != 0; place += card) {
      const auto line = bytes.substr(place, card);
      auto value = line.substr(10, line.find(" / ") == std::string::npos ? card : line.find(" / ") - 10);
      std::erase_if(value, [](char letter) { return letter == ' ' || letter == '\''; });
      header[line.substr(0, line.find_first_of(" ="))] = value;
    }
    place = (place / block + 1) * block;
    const auto count = std::stoull(header["NAXIS1"]) * std::stoull(header["NAXIS2"]) * std::stoull(header["NAXIS3"]);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t bits = 0;
      for (std::size_t k = 0; k < 4; ++k) bits = bits << 8 | static_cast<unsigned char>(bytes.at(place + 4 * i + k));
      pixels.push_back(std::bit_cast<float>(bits));
    }
  }

  double number(const std::string& key) { return std::stod(header.at(key)); }
  Tensor cube() const { return torch::tensor(std::vector<double>(pixels.begin(), pixels.end()), torch::kFloat64); }
};

json run_polar(const std::string& image, const std::filesystem::path& out, std::vector<std::string> more) {
  more.emplace_back("--json");
  const auto run = run_mpol_here(polar(image, out, more));
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.out == read_text(out / "summary.json"));
  return json::parse(run.out);
}

}  // namespace

TEST_CASE("polar writes the map with its axes, a table, a figure and a summary", "[cli][polar]") {
  const Scratch scratch;
  const auto image = (scratch / "ring.fits").string(), out = (scratch / "out").string();
  const auto frequencies = torch::tensor({230e9, 231e9}, torch::kFloat64);
  io::write_fits(image, lopsided_ring(), tilted_coords,
                 io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2).frequencies(frequencies));
  const auto summary = run_polar(image, out, with_geometry({"--nr", "30", "--nphi", "24", "--radius", "1.2"}));
  auto names = names_in(out);
  std::erase(names, "figures");  // gnuplot's scripts
  CHECK(names == std::vector<std::string>{"polar.csv", "polar.fits", "polar.png", "summary.json"});

  const PolarIntegrator integrator(
      tilted_coords,
      PolarIntegratorOptions().radii(even_edges(0, 1.2, 30)).azimuths(even_edges(0, 2 * units::pi, 24)).geometry(tilted_disc));
  const auto expected = integrator.integrate(io::read_fits(image).cube);
  RawFits fits(scratch / "out" / "polar.fits");
  CHECK(relative_error(fits.cube().view({2, 30, 24}), expected.mean) < 1e-6);
  CHECK(fits.header.at("BUNIT") == "Jy/arcsec2");
  CHECK(fits.header.at("CTYPE1") == "PHI");
  CHECK(fits.header.at("CUNIT1") == "deg");
  CHECK(fits.number("CRPIX1") == 1);
  CHECK(fits.number("CRVAL1") == Approx(7.5));
  CHECK(fits.number("CDELT1") == Approx(15));
  CHECK(fits.header.at("CTYPE2") == "RADIUS");
  CHECK(fits.header.at("CUNIT2") == "arcsec");
  CHECK(fits.number("CRVAL2") == Approx(0.02));
  CHECK(fits.number("CDELT2") == Approx(0.04));
  CHECK(fits.header.at("CTYPE3") == "FREQ");
  CHECK(fits.number("CRVAL3") == Approx(230e9));
  CHECK(fits.number("CDELT3") == Approx(1e9));

  CHECK(summary["mode"] == "mean");
  CHECK(summary["unit"] == "Jy/arcsec2");
  CHECK(summary["nr"] == 30);
  CHECK(summary["nphi"] == 24);
  CHECK(summary["radius_arcsec"] == 1.2);
  CHECK(summary["inclination_deg"] == 40.0);
  REQUIRE(summary["channels"].size() == 2);
  CHECK(summary["channels"][1]["flux_jy"].get<double>() == Approx(expected.sum[1].sum().item<double>()).epsilon(1e-6));
  CHECK(summary["channels"][1]["peak"].get<double>() == Approx(expected.mean[1].max().item<double>()));
  CHECK_THAT(summary["channels"][1]["peak_radius_arcsec"].get<double>(), WithinAbs(0.8, 0.041));
  CHECK_THAT(summary["channels"][1]["peak_phi_deg"].get<double>(), WithinAbs(75, 15.1));

  std::istringstream table(read_text(scratch / "out" / "polar.csv"));
  std::string line;
  std::getline(table, line);
  CHECK(line == "channel,radius_arcsec,phi_deg,value,scatter,area_arcsec2");
  for (std::int64_t row = 0; row < 2 * 30 * 24; ++row) {
    REQUIRE(std::getline(table, line));
    const auto c = row / 720, i = row / 24 % 30, j = row % 24;
    const auto cells = json::parse("[" + line + "]").get<std::vector<double>>();
    REQUIRE(cells.size() == 6);
    const bool right = cells[0] == static_cast<double>(c) && std::abs(cells[1] - integrator.radius()[i].item<double>()) < 1e-9 &&
                       std::abs(cells[2] - integrator.azimuth()[j].item<double>() / units::degree) < 1e-6 &&
                       cells[3] == Approx(expected.mean[c][i][j].item<double>()) &&
                       cells[4] == Approx(std::sqrt(expected.variance[c][i][j].item<double>())).margin(1e-12) &&
                       cells[5] == Approx(expected.area[i][j].item<double>());
    if (!right) FAIL_CHECK(line);
  }
  CHECK_FALSE(std::getline(table, line));
}

TEST_CASE("sums are fluxes in Jy, whatever the unit of the image", "[cli][polar]") {
  const Scratch scratch;
  const auto sky = lopsided_ring();
  const double flux = sky[1].sum().item<double>() * tilted_coords.cell_area();
  const Beam beam{.major = 0.3, .minor = 0.2, .position_angle = 0.4};
  io::write_fits(scratch / "a.fits", sky, tilted_coords);
  io::write_fits(scratch / "b.fits", sky, tilted_coords, io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2));
  io::write_fits(scratch / "c.fits", sky * beam_area(beam), tilted_coords,
                 io::FitsOptions().unit(io::FitsUnit::jy_per_beam).beams({beam}));
  const std::vector<std::string> bins = {"--mode", "sum", "--nr", "7", "--nphi", "5", "--radius", "2.298", "--channels", "1"};
  for (const std::string name : {"a", "b", "c"}) {
    const auto summary = run_polar((scratch / (name + ".fits")).string(), scratch / name, bins);
    RawFits fits(scratch / name / "polar.fits");
    INFO(name);
    CHECK(fits.header.at("BUNIT") == "Jy");
    CHECK(fits.header.at("NAXIS3") == "1");
    CHECK(fits.cube().sum().item<double>() == Approx(flux).epsilon(1e-5));  // the bins hold the whole image
    CHECK(summary["unit"] == "Jy");
    CHECK(summary["channels"][0]["flux_jy"].get<double>() == Approx(flux).epsilon(1e-5));
    CHECK(summary["area_arcsec2"].get<double>() == Approx(64 * 64 * tilted_coords.cell_area()).epsilon(1e-6));
  }
}

TEST_CASE("without options polar takes bins of a pixel and a degree to half the image, and the unit as it is", "[cli][polar]") {
  const Scratch scratch;
  const auto image = (scratch / "ring.fits").string();
  io::write_fits(image, lopsided_ring(), tilted_coords, io::FitsOptions().unit(io::FitsUnit::jy_per_beam));  // of no known beam
  const auto summary = run_polar(image, scratch / "out", {});
  CHECK(summary["nr"] == 32);
  CHECK(summary["nphi"] == 360);
  CHECK(summary["radius_arcsec"].get<double>() == Approx(1.6));
  CHECK(summary["unit"] == "Jy/beam");
  CHECK(summary["channels"][0]["flux_jy"].is_null());
  RawFits fits(scratch / "out" / "polar.fits");
  CHECK(fits.header.at("CTYPE3") == "CHANNEL");
  CHECK(fits.header.at("NAXIS1") == "360");
  CHECK(read_png(scratch / "out" / "polar.png").width == 1280);
  const auto sum = run_mpol_here(polar(image, scratch / "sum", {"--mode", "sum"}));
  CHECK(sum.exit_code == 1);
  CHECK(sum.error_names("Jy/beam"));
  CHECK_FALSE(std::filesystem::exists(scratch / "sum"));
}

TEST_CASE("polar and match by blocks of channels equal the whole, and hold a block only", "[cli][polar][match][memory]") {
  const Scratch scratch;
  const auto image = (scratch / "cube.fits").string();
  constexpr std::int64_t nchan = 160, npix = 512;  // 160 MiB of float32
  constexpr double mib = 0x1p20, bound = 0.06 * 0x1p30;
  const GridCoords coords(0.01, npix);
  const auto line = at::arange(1, nchan + 1, torch::kFloat32).view({-1, 1, 1});
  io::write_fits(image, at::exp(-(at::hypot(coords.sky_x(), coords.sky_y()) - 0.5).square() / 0.02).to(torch::kFloat32) * line,
                 coords, io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2));
  const std::vector<std::string> bins = {"--nr", "12", "--nphi", "16", "--radius", "1.2", "--quiet", "--memory-limit"};
  const auto growth = [&](std::vector<std::string> arguments, const std::string& limit) {
    arguments.insert(arguments.end(), bins.begin(), bins.end());
    arguments.push_back(limit);
    const CountingAllocator tensors;  // the process's memory has what earlier tests left for others to use
    const auto run = run_mpol_here(arguments);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
    return tensors.peak();
  };
  for (const std::string verb : {"polar", "match"}) {
    const auto blocks = scratch / (verb + "_blocks"), whole = scratch / (verb + "_whole");
    const auto arguments = [&](const std::filesystem::path& out) {
      std::vector<std::string> words = {verb, image, "-o", out.string()};
      if (verb == "match") words.insert(words.end(), {"--generate", "ring:0.2..0.9..8:0.1", "--dtype", "float64"});
      return words;
    };
    const double of_blocks = growth(arguments(blocks), "0.06"), of_whole = growth(arguments(whole), "1");
    INFO(verb << ": " << of_blocks / mib << " MiB by blocks, " << of_whole / mib << " MiB whole");
    CHECK(of_blocks < bound);
    CHECK(of_whole > bound);  // what the whole would fail by
    CHECK(read_text(blocks / (verb + ".csv")) == read_text(whole / (verb + ".csv")));
    if (verb == "polar") {
      RawFits one(blocks / "polar.fits"), other(whole / "polar.fits");
      CHECK(at::equal(one.cube(), other.cube()));
      CHECK(read_text(blocks / "polar.png") == read_text(whole / "polar.png"));
    }
  }
}

TEST_CASE("devices share the channels of polar, match and filter, with the results of one", "[cli][polar][match][filter]") {
  const Scratch scratch;
  const auto image = (scratch / "ring.fits").string();
  const auto sky = lopsided_ring();
  io::write_fits(image, at::cat({sky, 3 * sky, sky}), tilted_coords, io::FitsOptions().unit(io::FitsUnit::jy_per_arcsec2));
  io::write_fits(scratch / "line.fits", sky, tilted_coords);
  const auto data = write_observation(scratch / "vis.npz", small_observation(5));
  const auto run = [&](const std::string& verb, const std::string& name, const std::vector<std::string>& more,
                       const std::string& dtype = "float64") {
    std::vector<std::string> words = {verb, verb == "filter" ? data : image, "-o", (scratch / (verb + name)).string(), "--json"};
    if (verb != "filter") words.insert(words.end(), {"--nr", "12", "--nphi", "16", "--dtype", dtype});
    if (verb == "match") words.insert(words.end(), {"--generate", "ring:0.2..0.9..8:0.1"});
    if (verb == "filter") words.insert(words.end(), {"--template", (scratch / "line.fits").string()});
    words.insert(words.end(), more.begin(), more.end());
    return run_mpol_here(words);
  };
  for (const std::string verb : {"polar", "match", "filter"}) {
    const auto table = [&](const std::string& name) { return read_text(scratch / (verb + name) / (verb + ".csv")); };
    const auto one = run(verb, "one", {"--device", "cpu"});
    INFO(one.err);
    REQUIRE(one.exit_code == 0);
    CHECK(json::parse(one.out)["device"] == "cpu");
    const auto several = run(verb, "several", {"--device", "cpu,cpu"});
    INFO(several.err);
    if (verb == "filter") {
      CHECK(several.exit_code == 2);
      CHECK(several.error_names("cpu,cpu"));
    } else {
      REQUIRE(several.exit_code == 0);
      CHECK(json::parse(several.out)["device"] == "cpu,cpu");
      CHECK(table("several") == table("one"));
      // In float32 the same to rounding, and no more.
      const auto narrow = run(verb, "narrow", {"--device", "cpu"}, "float32");
      REQUIRE(narrow.exit_code == 0);
      CHECK(json::parse(narrow.out)["dtype"] == "float32");
      CHECK(table("narrow") != table("one"));
    }
    const auto missing = run(verb, "missing", {"--device", "cuda:7"});
    CHECK(missing.exit_code == 1);
    CHECK(missing.error_lines().size() == 1);
    CHECK(missing.error_names("cuda:7"));
    CHECK(run(verb, "unknown", {"--device", "gpu"}).exit_code == 2);
    CHECK_FALSE(std::filesystem::exists(scratch / (verb + "missing")));
  }
  RawFits one(scratch / "polarone" / "polar.fits"), narrow(scratch / "polarnarrow" / "polar.fits");
  CHECK(relative_error(narrow.cube(), one.cube()) < 2e-6);
}

TEST_CASE("polar refuses what it cannot use, in one line, and leaves nothing", "[cli][polar]") {
  const Scratch scratch;
  const auto image = (scratch / "ring.fits").string();
  io::write_fits(image, lopsided_ring(), tilted_coords);
  write_text(scratch / "words.fits", "this is no image");
  const auto out = scratch / "out";
  const auto refused = [&](const std::string& input, const std::vector<std::string>& more, int code, const std::string& words) {
    const auto run = run_mpol_here(polar(input, out, more));
    INFO(run.err);
    CHECK(run.exit_code == code);
    CHECK(run.error_lines().size() == 1);
    CHECK(run.error_names(words));
    CHECK_FALSE(std::filesystem::exists(out));
  };
  refused(image, {"--nr", "0"}, 2, "nr");
  refused(image, {"--nphi", "-3"}, 2, "nphi");
  refused(image, {"--nr", "100000", "--nphi", "100000"}, 2, "--nphi");
  refused(image, {"--mode", "median"}, 2, "mode");
  refused(image, {"--radius", "0"}, 2, "radius");
  refused(image, {"--radius", "2.4"}, 2, "--radius");  // corners are at 2.30"
  refused(image, {"--inclination", "90"}, 2, "inclination");
  refused(image, {"--channels", "2"}, 2, "--channels");
  refused((scratch / "words.fits").string(), {}, 1, "words.fits");
  refused((scratch / "missing.fits").string(), {}, 1, "missing.fits");
}
