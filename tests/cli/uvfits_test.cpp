// UVFITS files by the program.
#include "catch.h"

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../python.h"
#include "program.h"

using namespace mpol::testing;
using nlohmann::json;

namespace {

/// 0.5 Jy, 0.6" East and 0.4" North of the centre, in one IF without a table of frequencies.
std::string write_uvfits(const std::filesystem::path& path) {
  run_python(R"(
import sys, numpy as np
from astropy.io import fits
rng = np.random.default_rng(11)
n, frequencies, c, arcsec = 3000, 230e9 + 1e7 * np.arange(4), 299792458.0, np.pi / 648000
u, v = (rng.uniform(-800, 800, n) / c for _ in 'uv')
phase = 2 * np.pi * frequencies * (u * 0.6 + v * 0.4)[:, None] * arcsec
data = np.zeros((n, 1, 1, 4, 2, 3))
data[..., 0] = (0.5 * np.cos(phase))[:, None, None, :, None] + rng.normal(size=(n, 1, 1, 4, 2)) * 0.2
data[..., 1] = (0.5 * np.sin(phase))[:, None, None, :, None] + rng.normal(size=(n, 1, 1, 4, 2)) * 0.2
data[..., 2] = 25
groups = fits.GroupData(data, bitpix=-32, parnames=['UU', 'VV', 'BASELINE', 'DATE'],
                        pardata=[u, v, np.full(n, 258.0), np.full(n, 2459000.5)])
unit = fits.GroupsHDU(groups)
for key, value in dict(CTYPE2='COMPLEX', CTYPE3='STOKES', CRVAL3=-5.0, CDELT3=-1.0, CTYPE4='FREQ', CRVAL4=230e9, CDELT4=1e7, CRPIX4=1.0,
                       CTYPE5='RA', CRVAL5=69.5, CTYPE6='DEC', CRVAL6=-26.5, OBJECT='HD 1', BUNIT='JY').items():
    unit.header[key] = value
fits.HDUList([unit]).writeto(sys.argv[1])
)",
             {path.string()});
  return path.string();
}

Outcome run(const std::vector<std::string>& arguments) {
  auto outcome = run_mpol(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return outcome;
}

}  // namespace

TEST_CASE("verbs take a UVFITS file for an archive, and its source is where it was put", "[cli][uvfits]") {
  const Scratch scratch;
  const auto data = write_uvfits(scratch / "obs.fits");  // known by its header, not by its name
  const auto out = [&](const char* name) { return (scratch / name).string(); };
  const auto described = json::parse(run({"inspect", data, "--json"}).out);
  CHECK(described["n_visibilities"] == 12000);
  run({"dirty", data, "-o", out("dirty"), "--cell-size", "0.05", "--npix", "128"});
  run({"image", data, "-o", out("image"), "--cell-size", "0.05", "--npix", "128", "--epochs", "20", "--optimizer", "adam",
       "--learning-rate", "1", "--device", "cpu"});
  run({"export", data, "-o", out("vis.npz")});
  run({"predict", data, out("image/image.fits"), "-o", out("predicted.npz")});
  run({"plot", data, "-o", out("vis.png")});
  run({"profile", data, "-o", out("profile"), "--bin-width", "20"});
  run({"dirty", data, "-o", out("cube"), "--cell-size", "0.05", "--npix", "128", "--mode", "cube", "--channels", "1-3",
       "--stokes", "XX"});
  CHECK(json::parse(read_text(scratch / "cube" / "summary.json"))["channels"].size() == 3);
  CHECK(json::parse(read_text(scratch / "cube" / "summary.json"))["reading"][0]["column"] == "UVFITS");
  const auto peaks = run_python(R"(
import sys, numpy as np
from astropy.io import fits
for path in sys.argv[1:]:
    header, image = fits.getheader(path), np.squeeze(fits.getdata(path))
    y, x = np.unravel_index(image.argmax(), image.shape)
    print(round((x + 1 - header['CRPIX1']) * header['CDELT1'] * 3600, 3), round((y + 1 - header['CRPIX2']) * header['CDELT2'] * 3600, 3),
          header['CRVAL1'], header['OBJECT'])
)",
                                {out("dirty/dirty.fits"), out("image/image.fits")});
  CHECK(peaks == "0.6 0.4 69.5 HD 1\n0.6 0.4 69.5 HD 1\n");
}

TEST_CASE("options of measurement sets alone are refused with UVFITS", "[cli][uvfits]") {
  const Scratch scratch;
  const auto data = write_uvfits(scratch / "obs.uvfits");
  for (const std::string option : {"--select", "--column"}) {
    const auto outcome = run_mpol({"inspect", data, option, "DATA"});
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.error_names(option + ": DATA; is for measurement sets"));
  }
  CHECK(run_mpol({"inspect", data, "--uv-unit", "m"}).exit_code == 2);
}
