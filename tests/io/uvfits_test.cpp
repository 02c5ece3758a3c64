// UVFITS files, written by astropy, with a point source off the centre.
#include "catch.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <ATen/ops/exp.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>
#include <mpol_cpp/io/uvfits/uvfits.h>

#include "../compare.h"
#include "../python.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// 0.5 Jy, 0.6" to the East and 0.4" to the North; IF 0 has channels of rising, IF 1 of falling frequency.
constexpr const char* writer = R"(
import sys, numpy as np
from astropy.io import fits
path, *changes = sys.argv[1:]
o = dict(stokes=-1, hands=2, ifs=2, sign=1, bitpix=-32, unit='s', fq=1, u='UU---SIN', sources=1, setups=1, complex=3, autos=3)
for change in changes:
    key, value = change.split('=')
    o[key] = type(o[key])(value)
rng = np.random.default_rng(7)
n, nchan, nif, c = 400, 3, o['ifs'], 299792458.0
u, v = (rng.uniform(-900, 900, n) / c for _ in 'uv')          # seconds
reference, offsets, widths = 230e9, [0.0, 2e9], [1e7, -2e7]
fq = [[reference + offsets[i] + k * widths[i] for k in range(nchan)] for i in range(nif)] if o['fq'] else [[reference + k * 1e6 for k in range(nchan)]]
l, m = 0.6 * np.pi / 648000, 0.4 * np.pi / 648000
data = np.zeros((n, 1, 1, nif, nchan, o['hands'], o['complex']), 'f8')
for i in range(nif):
    for k in range(nchan):
        phase = o['sign'] * 2 * np.pi * fq[i][k] * (u * l + v * m)
        for h in range(o['hands']):
            # the hands differ, so that means by weight are told from plain ones
            data[:, 0, 0, i, k, h, 0] = 0.5 * np.cos(phase) * (1.2 if h == 0 else 0.9)
            data[:, 0, 0, i, k, h, 1] = 0.5 * np.sin(phase) * (1.2 if h == 0 else 0.9)
            if o['complex'] == 3:
                data[:, 0, 0, i, k, h, 2] = 10.0 if h == 0 else 20.0
if o['complex'] == 3:
    data[5, 0, 0, 0, 1, 0, 2] = -10
    data[6, 0, 0, 0, 1, o['hands'] - 1, 2] = 0
    if o['bitpix'] < 0:
        data[7, 0, 0, 0, 2, 0, 1] = np.nan
baseline = 256.0 * rng.integers(1, 5, n) + rng.integers(5, 9, n) + 0.01
baseline[10:10 + o['autos']] = 256 * 3 + 3
scale = 1.0 if o['unit'] == 's' else 1 / reference
names = [o['u'], o['u'].replace('UU', 'VV'), 'WW---SIN', 'BASELINE', 'DATE', 'DATE', 'FREQSEL', 'SOURCE']
values = [u / scale, v / scale, 0 * u, baseline, 2459000.5 + 0 * u, rng.random(n), 1 + np.arange(n) % o['setups'], 1 + np.arange(n) % o['sources']]
if o['u'].startswith('UU-L'):
    values[:2] = u * reference, v * reference
integers, scales = o['bitpix'] > 0, [1e-14, 1e-14, 1.0, 0.01, 0.01, 0.01, 1.0, 1.0]
if integers:
    data = np.rint(data * 2 ** 24).astype('i4')
    values = [np.rint((x - (1e-6 if i == 0 else 0)) / scales[i]).astype('i4') for i, x in enumerate(values)]
groups = fits.GroupData(data, bitpix=o['bitpix'], parnames=names, pardata=[np.asarray(x) for x in values])
primary = fits.GroupsHDU(groups)
h = primary.header
for key, value in dict(CTYPE2='COMPLEX', CRVAL2=1.0, CTYPE3='STOKES', CRVAL3=float(o['stokes']), CDELT3=-1.0 if o['stokes'] < 0 else 1.0, CRPIX3=1.0,
                       CTYPE4='FREQ', CRVAL4=reference, CDELT4=1e6, CRPIX4=1.0, CTYPE5='IF', CRVAL5=1.0, CTYPE6='RA', CRVAL6=69.5, CTYPE7='DEC', CRVAL7=-26.5,
                       OBJECT='DISC', TELESCOP='ALMA', EPOCH=2000.0, BUNIT='JY').items():
    h[key] = value
h['DATE-OBS'] = '2020-05-31'
if integers:
    h['BSCALE'], h['PZERO1'] = 2.0 ** -24, 1e-6
    for i, scale in enumerate(scales):
        h[f'PSCAL{i + 1}'] = scale
if o['unit'] != 's':
    h['PSCAL1'] = h['PSCAL2'] = scale
units = [primary]
if o['fq']:
    column = fits.Column
    units.append(fits.BinTableHDU.from_columns([
        column('FRQSEL', '1J', array=[1 + s for s in range(o['setups'])]),
        column('IF FREQ', f'{nif}D', array=[[x + 1e9 * s for x in offsets[:nif]] for s in range(o['setups'])]),
        column('CH WIDTH', f'{nif}E', array=[[abs(x) for x in widths[:nif]]] * o['setups']),
        column('SIDEBAND', f'{nif}J', array=[[1, -1][:nif]] * o['setups'])], name='AIPS FQ'))
units.append(fits.BinTableHDU.from_columns([
    fits.Column('ID. NO.', '1J', array=[1, 2]), fits.Column('SOURCE', '16A', array=['HD 1', 'HD 2']),
    fits.Column('RAEPO', '1D', array=[70.0, 80.0]), fits.Column('DECEPO', '1D', array=[-27.0, 3.0])], name='AIPS SU'))
fits.HDUList(units).writeto(path, overwrite=True)
)";

std::filesystem::path write(const TemporaryFolder& folder, std::vector<std::string> changes = {}) {
  const auto path = folder / "obs.uvfits";
  changes.insert(changes.begin(), path.string());
  run_python(writer, changes);
  return path;
}

io::CollectedVisibilities samples(const std::filesystem::path& path, const io::UvfitsOptions& options = {}) {
  return io::collect_samples(*io::open_uvfits(path, options));
}

/// What 0.5 Jy at 0.6" East and 0.4" North are in this library's convention.
Tensor expected(const Baselines& baselines) {
  const auto [u, v] = baselines.channel(0);
  const auto phase = (u * 0.6 + v * 0.4) * (-2 * units::pi * units::arcsec);
  return 0.5 * at::exp(phase * c10::complex<double>(0, 1));
}

std::string refusal_of(const std::filesystem::path& path, const io::UvfitsOptions& options = {}) {
  try {
    samples(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a source off the centre of a UVFITS file is where it was put", "[io][uvfits]") {
  const TemporaryFolder folder;
  const auto path = write(folder);
  REQUIRE(io::is_uvfits(path));
  const auto read = samples(path);
  const auto& visibilities = read.visibilities;
  // Of 2400 samples 3 rows are autocorrelations, one is flagged, one has no weight, one is not finite.
  CHECK(visibilities.nvis() == 2400 - 18 - 3);
  CHECK(read.dropped.autocorrelations == 18);
  CHECK(read.dropped.flagged == 1);
  CHECK(read.dropped.without_weight == 1);
  CHECK(read.dropped.not_finite == 1);
  CHECK_THAT(visibilities.weights().min().item<double>(), WithinAbs(30, 1e-5));
  // (10 x 1.2 + 20 x 0.9)/30 = 1; u and v are float32 in the file.
  CHECK(relative_error(visibilities.data()[0], expected(visibilities.baselines())) < 2e-6);
  const GridCoords coords(0.05, 128);
  const auto image = DirtyImager(coords, visibilities).image()[0];
  const auto peak = image.argmax().item<std::int64_t>();
  CHECK(peak / 128 == 64 + 8);   // 0.4" North
  CHECK(peak % 128 == 63 - 12);  // 0.6" East, to the left
}

TEST_CASE("frequencies of IFs are those of AIPS FQ, by rising frequency, with u and v of each", "[io][uvfits]") {
  const TemporaryFolder folder;
  const auto path = write(folder);
  const auto reader = io::open_uvfits(path);
  const auto& windows = reader->shape().windows;
  REQUIRE(windows.size() == 2);
  CHECK(windows[0].rows == 400);
  CHECK_THAT(windows[0].frequencies[2].item<double>(), WithinAbs(230.02e9, 1));
  CHECK_THAT(windows[1].frequencies[0].item<double>(), WithinAbs(231.96e9, 1));  // the lower sideband, turned over
  CHECK_THAT(windows[1].frequencies[2].item<double>(), WithinAbs(232e9, 1));
  CHECK(windows[1].channel_width == 2e7);
  const auto& observation = reader->shape().observation;
  CHECK_THAT(*observation.right_ascension, WithinAbs(70 * units::degree, 1e-12));  // of the table of sources
  CHECK_THAT(*observation.declination, WithinAbs(-27 * units::degree, 1e-12));
  CHECK(observation.object == "HD 1");
  CHECK(observation.telescope == "ALMA");
  CHECK(observation.date == "2020-05-31");
  io::UvfitsOptions second;
  second.windows = {1};
  const auto cube = io::collect_cube(*io::open_uvfits(path, second)).visibilities;
  CHECK(cube.nchan() == 3);
  CHECK(cube.nvis() == 397);
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    const auto plane = cube.select_channels({channel});
    CHECK(relative_error(plane.data()[0], expected(plane.baselines())) < 2e-6);
  }
  second.windows = {2};
  CHECK_THAT(refusal_of(path, second), ContainsSubstring("window 2 is not there") && ContainsSubstring("0 to 1"));
}

TEST_CASE("other ways to write the same file give the same samples", "[io][uvfits]") {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> ways = {{"unit=lambda"},           // PSCAL makes seconds of wavelengths
                                                      {"u=UU"},                  // without a projection
                                                      {"u=UU-L-SIN"},            // wavelengths
                                                      {"stokes=-5"},             // XX, YY
                                                      {"setups=2"},              // two setups of frequencies
                                                      {"bitpix=32"},             // integers, BSCALE
                                                      {"fq=0", "ifs=1"},         // without a table
                                                      {"stokes=1", "hands=1"}};  // I alone
  for (const auto& changes : ways) {
    INFO(changes.front());
    auto options = changes;
    if (changes.front() == "setups=2") options.push_back("autos=0");
    const auto path = write(folder, options);
    if (changes.front() == "setups=2") {
      const auto reader = io::open_uvfits(path);
      REQUIRE(reader->shape().windows.size() == 4);
      CHECK(reader->shape().windows[3].rows == 200);
      CHECK_THAT(reader->shape().windows[2].frequencies[0].item<double>(), WithinAbs(231e9, 1));
      const auto first = io::collect_samples(*reader).visibilities;
      CHECK(first.nvis() == 2400 - 3);
      continue;
    }
    const auto visibilities = samples(path).visibilities;
    const double flux = changes.front() == "stokes=1" ? 1.2 : 1;
    CHECK(visibilities.nvis() > 1100);
    CHECK(relative_error(visibilities.data()[0], flux * expected(visibilities.baselines())) < 3e-6);
  }
}

TEST_CASE("files of the other sign are read as they are written, and single hands by themselves", "[io][uvfits]") {
  const TemporaryFolder folder;
  const auto path = write(folder, {"sign=-1"});
  io::UvfitsOptions options;
  options.phases = io::SetPhases::as_written;
  options.polarization.polarization = io::Polarization::ll;
  const auto visibilities = samples(path, options).visibilities;
  CHECK(visibilities.observation().stokes == Stokes::ll);
  CHECK(relative_error(visibilities.data()[0], 0.9 * expected(visibilities.baselines())) < 2e-6);
  CHECK_THAT(visibilities.weights().max().item<double>(), WithinAbs(20, 1e-5));
  options.polarization.polarization = io::Polarization::xx;
  CHECK_THAT(refusal_of(path, options), ContainsSubstring("has the correlations RR, LL"));
}

TEST_CASE("what a UVFITS file lacks is named", "[io][uvfits]") {
  const TemporaryFolder folder;
  CHECK_THAT(refusal_of(write(folder, {"sources=2"})), ContainsSubstring("several sources: 1 HD 1 (200 groups), 2 HD 2"));
  CHECK_THAT(refusal_of(write(folder, {"u=XU"})), ContainsSubstring("no UU"));
  CHECK_THAT(refusal_of(write(folder, {"complex=2"})), ContainsSubstring("COMPLEX axis has 2"));
  CHECK_THAT(refusal_of(write(folder, {"fq=0", "ifs=1", "u=UU-L-SIN"})), ContainsSubstring("no error"));
  const auto path = write(folder);
  const auto bytes = std::filesystem::file_size(path);
  for (const auto left : {bytes / 2, bytes / 10, std::uintmax_t{5760}}) {
    std::filesystem::resize_file(path, left);
    CHECK_THROWS_AS(samples(path), Error);
  }
  std::ofstream(folder / "no.uvfits") << "no FITS file";
  CHECK_FALSE(io::is_uvfits(folder / "no.uvfits"));
  CHECK_FALSE(io::is_uvfits(folder.path()));
  CHECK_FALSE(io::is_uvfits(folder / "missing"));
}
