#include "catch.h"

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/number_text.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/fits_cube.h>

#include "../compare.h"
#include "../python.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

const GridCoords coords(0.05, 64);

/// A smooth positive cube that is different everywhere.
template <typename T = double>
Tensor cube(std::int64_t nchan) {
  return normal({nchan, coords.npix(), coords.npix()}, dtype_of<T>(), 5).abs();
}

Tensor even_frequencies(std::int64_t nchan) { return at::arange(nchan, torch::kFloat64) * -1.5e6 + 3.45e11; }

Observation observation() {
  return {-2.10880229, -0.73867832, "HD 142527", "ALMA", "2012-06-02T01:02:03.5", 3.457959899e11, "LSRK"};
}

/// Records warnings for the length of its scope.
class Warnings {
 public:
  Warnings()
      : before_(set_log_sink([this](LogLevel level, std::string_view message) {
          if (level == LogLevel::warning) text_ += message;
        })) {}
  ~Warnings() { set_log_sink(before_); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  LogSink before_;
};

/// cfitsio's own verifier finds neither errors nor warnings.
void check_verified(const std::filesystem::path& path) {
  INFO(run_command("fitsverify '" + path.string() + "' || true"));
  CHECK_THAT(run_command("fitsverify -q '" + path.string() + "' || true"), ContainsSubstring("verification OK"));
}

std::string refusal(const std::filesystem::path& path) {
  try {
    io::read_fits(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A number in the first header of a file: cards of 80 characters.
double header_number(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path, std::ios::binary);
  for (std::string card(80, ' '); file.read(card.data(), 80);) {
    if (card.starts_with(key) && card[8] == '=') return number_of<double>(card.substr(9, card.find('/') - 9)).value();
  }
  throw FileError("no " + key);
}

/// Writes FITS files with astropy, by a script that has `folder`, numpy as np and astropy's fits.
void astropy(const TemporaryFolder& folder, const std::string& script) {
  run_python("import sys\nimport numpy as np\nfrom astropy.io import fits\nfolder = sys.argv[1]\n" + script,
             {folder.path().string()});
}

}  // namespace

TEMPLATE_TEST_CASE("a cube survives FITS with its axes, beam and observation", "[io][quick]", float, double) {
  const TemporaryFolder folder;
  const auto sky = cube<TestType>(3);
  const Beam beam{0.31, 0.22, -0.6};
  const auto options = io::FitsOptions()
                           .frequencies(even_frequencies(3))
                           .observation(observation())
                           .beams({beam})
                           .history({"mpol image a.npz", "line one\nline two"});
  io::write_fits(folder / "a.fits", sky, coords, options);
  check_verified(folder / "a.fits");
  const auto image = io::read_fits(folder / "a.fits");
  CHECK(image.unit == "Jy/pixel");
  CHECK(relative_error(image.cube, sky * coords.cell_area()) < 1e-7);
  CHECK(image.cell_size == Approx(coords.cell_size()).epsilon(1e-13));
  CHECK(relative_error(image.frequencies, even_frequencies(3)) < 1e-14);
  CHECK(image.reference_column == 31);
  CHECK(image.reference_row == 32);
  REQUIRE(image.beams.size() == 1);
  CHECK(image.beams[0].major == Approx(beam.major).epsilon(1e-12));
  CHECK(image.beams[0].minor == Approx(beam.minor).epsilon(1e-12));
  CHECK(image.beams[0].position_angle == Approx(beam.position_angle).epsilon(1e-12));
  CHECK(*image.observation.right_ascension == Approx(-2.10880229 + 2 * units::pi).epsilon(1e-13));
  CHECK(*image.observation.declination == Approx(-0.73867832).epsilon(1e-13));
  CHECK(image.observation.object == "HD 142527");
  CHECK(image.observation.telescope == "ALMA");
  CHECK(image.observation.date == "2012-06-02T01:02:03.5");
  CHECK(*image.observation.rest_frequency == Approx(3.457959899e11).epsilon(1e-14));
  CHECK(image.observation.spectral_reference == "LSRK");
  CHECK(image.history == std::vector<std::string>{"mpol image a.npz", "line one", "line two"});
  CHECK(folder.count() == 1);
}

TEST_CASE("units: Jy/pixel multiplies by the cell's area, the others write the cube as it is", "[io][quick]") {
  const TemporaryFolder folder;
  const auto sky = cube(1);
  const auto [unit, name, factor] =
      GENERATE(table<io::FitsUnit, std::string, double>({{io::FitsUnit::jy_per_pixel, "Jy/pixel", coords.cell_area()},
                                                         {io::FitsUnit::jy_per_arcsec2, "Jy/arcsec2", 1.0},
                                                         {io::FitsUnit::jy_per_beam, "Jy/beam", 1.0}}));
  io::write_fits(folder / "a.fits", sky[0], coords, io::FitsOptions().unit(unit));
  const auto image = io::read_fits(folder / "a.fits");
  CHECK(image.unit == name);
  CHECK(relative_error(image.cube, sky * factor) < 1e-7);
  check_verified(folder / "a.fits");
}

TEST_CASE("without frequencies the third axis counts channels", "[io][quick]") {
  const TemporaryFolder folder;
  io::write_fits(folder / "a.fits", cube(4), coords);
  check_verified(folder / "a.fits");
  const auto image = io::read_fits(folder / "a.fits");
  CHECK(image.cube.size(0) == 4);
  CHECK_FALSE(image.frequencies.defined());
  CHECK(image.beams.empty());
  REQUIRE(image.history.size() == 1);
  CHECK_THAT(image.history[0], ContainsSubstring("phase centre is unknown"));
}

TEST_CASE("HISTORY says which coordinate of the phase centre is unknown, and what is unknown stays so", "[io][quick]") {
  const TemporaryFolder folder;
  struct Known {
    std::optional<double> right_ascension, declination;
    std::string line;
  };
  const auto known =
      GENERATE(Known{{}, {}, "The phase centre is unknown: CRVAL1 and CRVAL2 are 0."},
               Known{{}, -0.4, "The right ascension of the phase centre is unknown: CRVAL1 is 0."},
               Known{1.5, {}, "The declination of the phase centre is unknown: CRVAL2 is 0."}, Known{1.5, -0.4, ""});
  Observation observation;
  observation.right_ascension = known.right_ascension;
  observation.declination = known.declination;
  io::write_fits(folder / "a.fits", cube(1), coords, io::FitsOptions().observation(observation));
  const auto image = io::read_fits(folder / "a.fits");
  CHECK(image.history == (known.line.empty() ? std::vector<std::string>{} : std::vector<std::string>{known.line}));
  CHECK(image.observation.right_ascension.has_value() == known.right_ascension.has_value());
  CHECK(image.observation.declination.has_value() == known.declination.has_value());
  CHECK(header_number(folder / "a.fits", "CRVAL1") == Approx(known.right_ascension.value_or(0) / units::degree).margin(1e-12));
  CHECK(header_number(folder / "a.fits", "CRVAL2") == Approx(known.declination.value_or(0) / units::degree).margin(1e-12));
}

TEST_CASE("a phase centre of 0, 0 in a header of another program is none", "[io][quick]") {
  const TemporaryFolder folder;
  Observation origin;
  origin.right_ascension = 0;
  origin.declination = 0;
  io::write_fits(folder / "a.fits", cube(1), coords, io::FitsOptions().observation(origin));
  const auto image = io::read_fits(folder / "a.fits");
  CHECK(image.history.empty());
  CHECK_FALSE(image.observation.right_ascension.has_value());
  CHECK_FALSE(image.observation.declination.has_value());
}

TEST_CASE("uneven frequencies lie in a table, with a warning", "[io][quick]") {
  const TemporaryFolder folder;
  const auto frequencies = at::tensor({1e11, 1.1e11, 1.3e11}, torch::kFloat64);
  const Warnings warnings;
  io::write_fits(folder / "a.fits", cube(3), coords, io::FitsOptions().frequencies(frequencies));
  CHECK_THAT(warnings.text(), ContainsSubstring("the frequencies of the channels are not evenly spaced"));
  check_verified(folder / "a.fits");
  CHECK(at::equal(io::read_fits(folder / "a.fits").frequencies, frequencies));
}

TEST_CASE("beams that differ lie in a table, equal ones in the header", "[io][quick]") {
  const TemporaryFolder folder;
  const std::vector<Beam> beams{{0.3, 0.2, 0.1}, {0.31, 0.21, -0.2}};
  io::write_fits(folder / "a.fits", cube(2), coords, io::FitsOptions().beams(beams).unit(io::FitsUnit::jy_per_beam));
  check_verified(folder / "a.fits");
  const auto read = io::read_fits(folder / "a.fits").beams;
  REQUIRE(read.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(read[i].major == Approx(beams[i].major).epsilon(1e-6));
    CHECK(read[i].minor == Approx(beams[i].minor).epsilon(1e-6));
    CHECK(read[i].position_angle == Approx(beams[i].position_angle).epsilon(1e-6));
  }
  io::write_fits(folder / "b.fits", cube(2), coords, io::FitsOptions().beams({beams[0], beams[0]}));
  CHECK(io::read_fits(folder / "b.fits").beams.size() == 1);
}

TEST_CASE("astropy finds an off-centre source where it is, with its flux, and the checksums right", "[io]") {
  const TemporaryFolder folder;
  auto sky = at::zeros({2, 64, 64}, torch::kFloat32);
  sky[1][40][12] = 7.0;  // 8 rows North of the centre row 32, 19 columns East of the centre column 31
  io::write_fits(folder / "a.fits", sky, coords, io::FitsOptions().frequencies(even_frequencies(2)).observation(observation()));
  const auto output = run_python(R"(
import sys, warnings
import numpy as np
from astropy.io import fits
from astropy.wcs import WCS
from astropy.coordinates import SkyCoord
warnings.simplefilter('error')
warnings.filterwarnings('ignore', message='.*datfix.*')  # astropy says that it sets MJD-OBS from DATE-OBS
with fits.open(sys.argv[1], checksum=True) as hdus:
    header, data = hdus[0].header, hdus[0].data
    assert header['BITPIX'] == -32 and data.shape == (1, 2, 64, 64), data.shape
    assert [header[f'CTYPE{i}'] for i in (1, 2, 3, 4)] == ['RA---SIN', 'DEC--SIN', 'FREQ', 'STOKES']
    assert (header['CRPIX1'], header['CRPIX2']) == (32, 33) and header['CUNIT3'] == 'Hz' and header['LONPOLE'] == 180
    assert header['BUNIT'] == 'Jy/pixel' and header['ORIGIN'].startswith('mpol_cpp') and 'CHECKSUM' in header and 'DATASUM' in header
    _, channel, row, column = np.unravel_index(np.argmax(data), data.shape)
    world = WCS(header)
    place, frequency, _ = world.pixel_to_world(column, row, channel, 0)
    centre = SkyCoord(header['CRVAL1'], header['CRVAL2'], unit='deg', frame=place.frame.name)
    east, north = centre.spherical_offsets_to(place)
    print(f'{east.arcsec:.9f} {north.arcsec:.9f} {data.sum():.9f} {frequency.to_value("Hz"):.6f}')
)",
                                 {(folder / "a.fits").string()});
  double east = 0, north = 0, flux = 0, frequency = 0;
  REQUIRE(std::sscanf(output.c_str(), "%lf %lf %lf %lf", &east, &north, &flux, &frequency) == 4);
  CHECK(east == Approx(19 * 0.05).epsilon(1e-7));
  CHECK(north == Approx(8 * 0.05).epsilon(1e-7));
  CHECK(flux == Approx(7.0 * coords.cell_area()).epsilon(1e-7));
  CHECK(frequency == Approx(even_frequencies(2)[1].item<double>()).epsilon(1e-13));
}

TEST_CASE("an image of any polarisation says so, and astropy reads which", "[io]") {
  const TemporaryFolder folder;
  const auto stokes = GENERATE(Stokes::i, Stokes::q, Stokes::v, Stokes::rr, Stokes::xx, Stokes::yx);
  INFO(to_string(stokes));
  auto about = observation();
  about.stokes = stokes;
  io::write_fits(folder / "a.fits", cube(2), coords, io::FitsOptions().frequencies(even_frequencies(2)).observation(about));
  check_verified(folder / "a.fits");
  CHECK(io::read_fits(folder / "a.fits").observation.stokes == stokes);
  CHECK(header_number(folder / "a.fits", "CRVAL4") == static_cast<double>(stokes));
  const auto number = run_python(R"(
import sys, warnings
from astropy.io import fits
from astropy.wcs import WCS
warnings.simplefilter('error')
warnings.filterwarnings('ignore', message='.*datfix.*')
print(WCS(fits.getheader(sys.argv[1])).wcs_pix2world([[0, 0, 0, 0]], 0)[0][3])
)",
                                 {(folder / "a.fits").string()});
  CHECK(std::stod(number) == static_cast<double>(stokes));
}

TEST_CASE("samples lie along an axis of their own, behind a channel of known frequency", "[io]") {
  const TemporaryFolder folder;
  const auto samples = cube(5);
  const auto options = io::FitsOptions()
                           .planes(io::FitsPlanes::samples)
                           .frequencies(even_frequencies(1))
                           .observation(observation())
                           .beams({{0.3, 0.2, 0.1}});
  io::write_fits(folder / "a.fits", samples, coords, options);
  check_verified(folder / "a.fits");
  const auto image = io::read_fits(folder / "a.fits");
  CHECK(image.planes == io::FitsPlanes::samples);
  CHECK(relative_error(image.cube, samples * coords.cell_area()) < 1e-7);
  CHECK_FALSE(image.frequencies.defined());
  CHECK(image.beams.size() == 1);
  io::FitsCube some(folder / "a.fits");
  CHECK(at::equal(some.read(3, 5), image.cube.narrow(0, 3, 2)));
  const auto shape = run_python(R"(
import sys, warnings
import numpy as np
from astropy.io import fits
from astropy.wcs import WCS
warnings.simplefilter('error')
warnings.filterwarnings('ignore', message='.*datfix.*')
with fits.open(sys.argv[1], checksum=True) as hdus:
    header = hdus[0].header
    assert [header[f'CTYPE{i}'] for i in (3, 4, 5)] == ['FREQ', 'STOKES', 'SAMPLE'], header
    world = WCS(header)
    print(*hdus[0].data.shape, world.wcs_pix2world([[0, 0, 0, 0, 4]], 0)[0][4], world.celestial.naxis)
)",
                                {(folder / "a.fits").string()});
  CHECK(shape == "5 1 1 64 64 4.0 2\n");

  io::FitsCubeWriter writer(folder / "blocks.fits", coords, 5, options);
  writer.add(samples.narrow(0, 0, 2));
  writer.add(samples.narrow(0, 2, 3));
  writer.finish();
  CHECK(at::allclose(io::read_fits(folder / "blocks.fits").cube, image.cube, 1e-6, 1e-9));
  const auto path = folder / "b.fits";
  CHECK_THROWS_AS(io::write_fits(path, samples, coords, io::FitsOptions(options).frequencies(even_frequencies(5))), ShapeError);
  CHECK_THROWS_AS(io::write_fits_split_channels(path, samples, coords, options), ValueError);
}

TEST_CASE("an image off the phase centre has its pixels where they are on the sky", "[io]") {
  const TemporaryFolder folder;
  auto off = observation();
  off.center = {37 * coords.cell_size(), -1000 * coords.cell_size()};
  io::write_fits(folder / "a.fits", cube(1), coords, io::FitsOptions().observation(observation()));
  io::write_fits(folder / "b.fits", cube(1), coords, io::FitsOptions().observation(off));
  const auto output = run_python(R"(
import sys, warnings
import numpy as np
from astropy.io import fits
from astropy.wcs import WCS
warnings.simplefilter('ignore')  # astropy says that it sets MJD-OBS from DATE-OBS
about, off = (WCS(fits.getheader(name)).celestial for name in sys.argv[1:])
header = fits.getheader(sys.argv[2])
assert (header['CRPIX1'], header['CRPIX2']) == (32 + 37, 33 + 1000), (header['CRPIX1'], header['CRPIX2'])
columns, rows = np.meshgrid(np.arange(0, 64, 9), np.arange(0, 64, 9))
here, there = about.pixel_to_world(columns - 37, rows - 1000), off.pixel_to_world(columns, rows)
print(f'{here.separation(there).arcsec.max():.3e}')
# Direction cosines about the phase centre, as the visibilities have them, for the corner.
a0, d0 = np.deg2rad([header['CRVAL1'], header['CRVAL2']])
corner = off.pixel_to_world(0, 0)
a, d = corner.ra.rad, corner.dec.rad
l = np.cos(d) * np.sin(a - a0)
m = np.sin(d) * np.cos(d0) - np.cos(d) * np.sin(d0) * np.cos(a - a0)
print(f'{np.rad2deg(l) * 3600:.9f} {np.rad2deg(m) * 3600:.9f}')
)",
                                 {(folder / "a.fits").string(), (folder / "b.fits").string()});
  double separation = 1, l = 0, m = 0;
  REQUIRE(std::sscanf(output.c_str(), "%lf %lf %lf", &separation, &l, &m) == 3);
  CHECK(separation < 1e-2 * coords.cell_size());
  CHECK(l == Approx((31 + 37) * coords.cell_size()).epsilon(1e-7));
  CHECK(m == Approx((-32 - 1000) * coords.cell_size()).epsilon(1e-7));
  const auto read = io::read_fits(folder / "b.fits");
  CHECK(read.reference_column == 31 + 37);
  CHECK(read.reference_row == 32 + 1000);
}

TEST_CASE("a cube that is written some channels at a time is the same file", "[io][quick]") {
  const TemporaryFolder folder;
  const auto sky = cube(7);
  std::vector<Beam> beams;
  for (int c = 0; c < 7; ++c) beams.push_back({.major = 0.3 + 0.01 * c, .minor = 0.2, .position_angle = 0.1});
  const auto uneven = torch::tensor({1e9, 2e9, 4e9, 5e9, 7e9, 8e9, 9e9}, torch::kFloat64);
  const std::vector<io::FitsOptions> all = {io::FitsOptions(),
                                            io::FitsOptions().unit(io::FitsUnit::jy_per_beam).beams(beams).frequencies(uneven)};
  for (const auto& options : all) {
    io::write_fits(folder / "whole.fits", sky, coords, options);
    io::FitsCubeWriter writer(folder / "blocks.fits", coords, 7, options);
    writer.add(sky.narrow(0, 0, 3));
    writer.add(sky.narrow(0, 3, 1).to(torch::kFloat32));
    CHECK_THROWS_AS(writer.add(sky), ShapeError);
    CHECK_THROWS_AS(writer.finish(), ShapeError);
    CHECK_FALSE(std::filesystem::exists(folder / "blocks.fits"));
    writer.add(sky.narrow(0, 4, 3));
    writer.finish();
    const auto one = io::read_fits(folder / "blocks.fits"), other = io::read_fits(folder / "whole.fits");
    CHECK(at::allclose(one.cube, other.cube, 1e-6, 1e-9));
    CHECK(one.unit == other.unit);
    CHECK((one.beams == other.beams));
    CHECK(one.frequencies.defined() == other.frequencies.defined());
    if (one.frequencies.defined()) CHECK(at::equal(one.frequencies, other.frequencies));
    std::filesystem::remove(folder / "blocks.fits");
  }
  CHECK_THROWS_AS(io::FitsCubeWriter(folder / "none.fits", coords, 0), ValueError);
}

TEST_CASE("channels are written to files of their own", "[io][quick]") {
  const TemporaryFolder folder;
  const auto sky = cube(3);
  const auto frequencies = at::tensor({1e11, 1.1e11, 1.3e11}, torch::kFloat64);
  const std::vector<Beam> beams{{0.3, 0.2, 0.1}, {0.31, 0.21, -0.2}, {0.32, 0.22, 0}};
  const auto paths =
      io::write_fits_split_channels(folder / "image.fits", sky, coords, io::FitsOptions().frequencies(frequencies).beams(beams));
  REQUIRE(paths.size() == 3);
  CHECK(paths[2] == folder / "image_0002.fits");
  CHECK(folder.count() == 3);
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    const auto image = io::read_fits(paths[static_cast<std::size_t>(channel)]);
    CHECK(relative_error(image.cube[0], sky[channel] * coords.cell_area()) < 1e-7);
    CHECK(at::equal(image.frequencies, frequencies.narrow(0, channel, 1)));
    CHECK(image.beams[0].major == Approx(beams[static_cast<std::size_t>(channel)].major));
  }
}

TEST_CASE("what was in memory before a file does not come into it", "[io][quick]") {
  const TemporaryFolder folder;
  const auto sky = cube(2);
  const auto options = io::FitsOptions().beams({{0.3, 0.2, 0.1}, {0.31, 0.21, -0.2}});
  const auto write = [&](const std::string& name) {
    io::write_fits(folder / name, sky, coords, options);
    std::ifstream file(folder / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto first = write("first.fits");
  // The memory of a file of the same size, with the table that it would end with: an allocator that returns it unchanged
  // is the worst case (and glibc's usual one).
  const auto room = static_cast<std::size_t>(sky.numel()) * sizeof(float) + (1U << 16U);
  for (int i = 0; i < 20; ++i) {
    const std::unique_ptr<char, decltype(&std::free)> stale(static_cast<char*>(std::malloc(room)), &std::free);
    std::copy(first.begin(), first.end(), stale.get());
    std::fill(stale.get() + first.size(), stale.get() + room, 'X');
  }
  for (int i = 0; i < 5; ++i) CHECK((write("again.fits") == first));
}

TEST_CASE("the same image gives the same bytes, odd text included", "[io][quick]") {
  const TemporaryFolder folder;
  auto about = observation();
  about.object = "Bär 'quoted' \n";
  const auto options = io::FitsOptions().observation(about).history({std::string(300, 'h'), "µas", ""});
  for (const char* name : {"a.fits", "b.fits"}) io::write_fits(folder / name, cube(1), coords, options);
  CHECK(run_command("cmp " + (folder / "a.fits").string() + " " + (folder / "b.fits").string()).empty());
  check_verified(folder / "a.fits");
}

TEST_CASE("names are taken literally", "[io][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "!a[1:3](b)+c.fits.gz";
  io::write_fits(path, cube(1), coords);
  CHECK(std::filesystem::exists(path));
  CHECK(io::read_fits(path).cube.size(0) == 1);
}

TEST_CASE("images off the grid and options of other channels are refused", "[io][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.fits";
  CHECK_THROWS_WITH(io::write_fits(path, at::ones({2, 64, 62}), coords),
                    ContainsSubstring("(2, 64, 62)") && ContainsSubstring("npix = 64"));
  CHECK_THROWS_AS(io::write_fits(path, at::ones({1, 1, 64, 64}), coords), ShapeError);
  CHECK_THROWS_AS(io::write_fits(path, at::ones({0, 64, 64}), coords), ShapeError);
  CHECK_THROWS_AS(io::write_fits(path, at::ones({64, 64}, torch::kComplexFloat), coords), ShapeError);
  CHECK_THROWS_AS(io::write_fits(path, cube(2), coords, io::FitsOptions().frequencies(even_frequencies(3))), ShapeError);
  CHECK_THROWS_AS(io::write_fits(path, cube(1), coords, io::FitsOptions().frequencies(at::tensor({NAN}))), DataError);
  CHECK_THROWS_AS(io::write_fits(path, cube(3), coords, io::FitsOptions().beams({{1, 1, 0}, {1, 1, 0}})), ShapeError);
  CHECK_THROWS_AS(io::write_fits(path, cube(1), coords, io::FitsOptions().beams({{1, 2, 0}})), ValueError);
  CHECK_THROWS_AS(io::write_fits(path, cube(1), coords, io::FitsOptions().beams({{NAN, 1, 0}})), ValueError);
  CHECK_THROWS_WITH(io::write_fits(folder / "absent" / "a.fits", cube(1), coords), ContainsSubstring("create its folder"));
  CHECK(folder.count() == 0);
}

TEST_CASE("a full disk while writing FITS leaves the old file and no temporary", "[io]") {
  const TemporaryFolder folder;
  io::write_fits(folder / "a.fits", cube(1), coords);
  const auto before = io::read_fits(folder / "a.fits").cube;
  const auto large = at::ones({64, 64, 64});
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // a limit on file sizes stands for the full disk
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int result = 1;
    try {
      io::write_fits(folder / "a.fits", large, coords);
    } catch (const FileError& error) {
      result = std::string(error.what()).find("cannot write") != std::string::npos ? 0 : 2;
    }
    ::_exit(result);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(at::equal(io::read_fits(folder / "a.fits").cube, before));
  CHECK(folder.count() == 1);
}

TEST_CASE("files of other programs are read: axes, units, flips, scaling, compression", "[io]") {
  const TemporaryFolder folder;
  astropy(folder, R"(
values = np.arange(6 * 8, dtype='f4').reshape(6, 8)
def header(**more):
    h = fits.Header()
    h.update(CTYPE1='RA---SIN', CTYPE2='DEC--SIN', CDELT1=-1 / 3600, CDELT2=1 / 3600, CRPIX1=4., CRPIX2=3., CRVAL1=10., CRVAL2=-20., CUNIT1='deg', CUNIT2='deg')
    h.update(more)
    return h
def save(name, data, **more): fits.PrimaryHDU(data, header(**more)).writeto(f'{folder}/{name}.fits')
save('plain', values)
save('double', values.astype('f8'))
save('flipped', values[::-1, ::-1].copy(), CDELT1=1 / 3600, CDELT2=-1 / 3600, CRPIX1=5., CRPIX2=4.)
save('three', np.stack([values, values + 1]), CTYPE3='FREQ', CRPIX3=2., CRVAL3=100., CDELT3=0.5, CUNIT3='GHz')
save('casa', np.stack([values, values + 1])[:, None], CTYPE3='STOKES', CTYPE4='FREQ', CRPIX4=1., CRVAL4=1e11, CDELT4=-1e6, CUNIT4='Hz')
save('wsclean', np.stack([values])[None], CTYPE3='FREQ', CRPIX3=1., CRVAL3=1e11, CDELT3=1e9, CTYPE4='STOKES')
scaled = fits.PrimaryHDU(values.copy(), header()); scaled.scale('int16', bscale=0.5, bzero=3)
scaled.writeto(f'{folder}/scaled.fits')
cd = header(); del cd['CDELT1'], cd['CDELT2']; cd.update(CD1_1=-1 / 3600, CD1_2=0.0, CD2_1=0.0, CD2_2=1 / 3600)
fits.PrimaryHDU(values, cd).writeto(f'{folder}/cd.fits')
fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(values, header())]).writeto(f'{folder}/extension.fits')
fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(values, header(), compression_type='GZIP_1', quantize_level=0)]).writeto(f'{folder}/tiles.fits')
fits.PrimaryHDU(values, header()).writeto(f'{folder}/zipped.fits.gz')
arcsec = header(CDELT1=-1.0, CDELT2=1.0, CUNIT1='arcsec', CUNIT2='arcsec'); fits.PrimaryHDU(values, arcsec).writeto(f'{folder}/arcsec.fits')
save('blank', np.where(values == 5, np.nan, values))
)");
  const auto expected = at::arange(48, torch::kFloat64).reshape({6, 8});
  for (const char* name : {"plain.fits", "double.fits", "flipped.fits", "wsclean.fits", "cd.fits", "extension.fits", "tiles.fits",
                           "zipped.fits.gz", "arcsec.fits", "scaled.fits"}) {
    INFO(name);
    const auto image = io::read_fits(folder / name);
    CHECK(at::equal(image.cube, expected.unsqueeze(0)));
    CHECK(image.cell_size == Approx(1.0).epsilon(1e-12));
    CHECK(image.reference_column == 3);
    CHECK(image.reference_row == 2);
  }
  for (const char* name : {"three.fits", "casa.fits"}) {
    INFO(name);
    CHECK(at::equal(io::read_fits(folder / name).cube, at::stack({expected, expected + 1})));
  }
  CHECK(relative_error(io::read_fits(folder / "three.fits").frequencies, at::tensor({99.5e9, 100e9}, torch::kFloat64)) < 1e-14);
  CHECK(relative_error(io::read_fits(folder / "casa.fits").frequencies, at::tensor({1e11, 1e11 - 1e6}, torch::kFloat64)) < 1e-14);
  CHECK(io::read_fits(folder / "wsclean.fits").frequencies.item<double>() == 1e11);
  CHECK(io::read_fits(folder / "blank.fits").cube.isnan().sum().item<std::int64_t>() == 1);
}

TEST_CASE("files that hold no usable image are refused in words", "[io]") {
  const TemporaryFolder folder;
  astropy(folder, R"(
values = np.arange(48, dtype='f4').reshape(6, 8)
def save(name, data, **more):
    h = fits.Header()
    h.update({**dict(CTYPE1='RA---SIN', CTYPE2='DEC--SIN', CDELT1=-1 / 3600, CDELT2=1 / 3600), **more})
    fits.PrimaryHDU(data, h).writeto(f'{folder}/{name}.fits')
save('stokes', np.stack([values] * 4), CTYPE3='STOKES')
save('hands', np.zeros((2, 3, 6, 8), 'f4'), CTYPE3='FREQ', CTYPE4='STOKES', CRPIX4=1.0, CRVAL4=-5.0, CDELT4=-1.0)
save('samples', np.zeros((4, 1, 3, 6, 8), 'f4'), CTYPE3='FREQ', CTYPE4='STOKES', CTYPE5='SAMPLE')
save('odd', np.stack([values]), CTYPE3='STOKES', CRPIX3=1.0, CRVAL3=9.0)
save('two', np.zeros((2, 3, 6, 8), 'f4'), CTYPE3='FREQ', CTYPE4='TIME')
save('rotated', values, CROTA2=30.0)
save('sheared', values, PC1_2=0.5)
save('oblong', values, CDELT2=2 / 3600)
save('swapped', values, CTYPE1='DEC--SIN', CTYPE2='RA---SIN')
save('zero', values, CDELT1=0.0)
save('unit', values, CUNIT1='parsec')
save('line', np.zeros(5, 'f4'))
fits.PrimaryHDU(values).writeto(f'{folder}/bare.fits')
)");
  CHECK_THAT(refusal(folder / "absent.fits"), ContainsSubstring("absent.fits: no such file"));
  CHECK_THAT(refusal(folder.path()), ContainsSubstring("not a regular file"));
  std::ofstream(folder / "empty.fits").close();
  CHECK_THAT(refusal(folder / "empty.fits"), ContainsSubstring("empty (0 bytes)"));
  std::ofstream(folder / "text.fits") << std::string(5000, 'x');
  CHECK_THAT(refusal(folder / "text.fits"), ContainsSubstring("text.fits") && ContainsSubstring("no FITS image or is damaged"));
  CHECK_THAT(refusal(folder / "stokes.fits"), ContainsSubstring("4 Stokes planes (I, Q, U, V)"));
  CHECK_THAT(refusal(folder / "hands.fits"), ContainsSubstring("2 Stokes planes (XX, YY)"));
  CHECK_THAT(refusal(folder / "samples.fits"), ContainsSubstring("axes 3 and 5"));
  {
    const Warnings warnings;
    CHECK(io::read_fits(folder / "odd.fits").observation.stokes == Stokes::i);
    CHECK_THAT(warnings.text(), ContainsSubstring("odd.fits: its axis STOKES has the number 9"));
  }
  CHECK_THAT(refusal(folder / "two.fits"), ContainsSubstring("axes 3 and 4"));
  CHECK_THAT(refusal(folder / "rotated.fits"), ContainsSubstring("rotated") && ContainsSubstring("30"));
  CHECK_THAT(refusal(folder / "sheared.fits"), ContainsSubstring("rotated"));
  CHECK_THAT(refusal(folder / "oblong.fits"), ContainsSubstring("1 x 2 arcsec"));
  CHECK_THAT(refusal(folder / "swapped.fits"), ContainsSubstring("transpose"));
  CHECK_THAT(refusal(folder / "zero.fits"), ContainsSubstring("CDELT1"));
  CHECK_THAT(refusal(folder / "bare.fits"), ContainsSubstring("CDELT1"));
  CHECK_THAT(refusal(folder / "unit.fits"), ContainsSubstring("'parsec'"));
  CHECK_THAT(refusal(folder / "line.fits"), ContainsSubstring("no image of two axes"));
}

TEST_CASE("pixels that do not match their checksum are read with a warning", "[io][quick]") {
  const TemporaryFolder folder;
  io::write_fits(folder / "a.fits", cube(1), coords);
  const Warnings warnings;
  static_cast<void>(io::read_fits(folder / "a.fits"));
  CHECK(warnings.text().empty());
  std::fstream file(folder / "a.fits", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-8000, std::ios::end);
  file.put('x');
  file.close();
  static_cast<void>(io::read_fits(folder / "a.fits"));
  CHECK_THAT(warnings.text(), ContainsSubstring("a.fits: its pixels do not match their checksum"));
}

TEST_CASE("damaged FITS files never crash the reader", "[io]") {
  const TemporaryFolder folder;
  io::write_fits(folder / "a.fits", cube(1), GridCoords(0.05, 64), io::FitsOptions().frequencies(even_frequencies(1)));
  std::ifstream file(folder / "a.fits", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const auto write = [&](const std::string& bytes) { std::ofstream(folder / "damaged.fits", std::ios::binary) << bytes; };
  constexpr std::size_t padding = 2880;  // at most; zeros after the last pixel
  for (std::size_t length = 0; length < whole.size() - padding; length += 997) {
    write(whole.substr(0, length));
    INFO("cut at " << length);
    CHECK(refusal(folder / "damaged.fits") != "no error");
  }
  const Warnings warnings;
  for (std::size_t position = 0; position < 2880; position += 3) {
    for (const char value : {'9', '\x00', '\xff'}) {
      auto damaged = whole;
      damaged[position] = value;
      write(damaged);
      static_cast<void>(refusal(folder / "damaged.fits"));
    }
  }
}
