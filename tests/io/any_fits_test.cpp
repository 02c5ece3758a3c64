// Images whose pixels are oblong, turned or sheared.
#include "catch.h"

#include <cmath>
#include <sstream>
#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/any_fits.h>

#include "../python.h"
#include "compare.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Each header with the offsets that astropy.wcs gives to pixel (row 5, column 2), arcsec.
constexpr const char* places_script = R"(
import sys
import numpy as np
from astropy.io import fits
from astropy.wcs import WCS
folder = sys.argv[1]
a = 1 / 3600
turn = np.deg2rad(25)
headers = dict(
    oblong=dict(CDELT1=-a, CDELT2=2 * a),
    crota=dict(CDELT1=-a, CDELT2=2 * a, CROTA2=30.0),
    pc=dict(CDELT1=-2 * a, CDELT2=a, PC1_1=np.cos(turn), PC1_2=-np.sin(turn), PC2_1=np.sin(turn), PC2_2=np.cos(turn)),
    partial=dict(CDELT1=-2 * a, CDELT2=a, PC1_2=0.25),
    cd=dict(CD1_1=-a, CD1_2=0.3 * a, CD2_1=0.1 * a, CD2_2=1.5 * a),
    quarter=dict(CDELT1=-a, CDELT2=a, PC1_1=0.0, PC1_2=-1.0, PC2_1=1.0, PC2_2=0.0),
    upright=dict(CDELT1=-a, CDELT2=a),
    degenerate=dict(CD1_1=a, CD1_2=a, CD2_1=a, CD2_2=a))
for name, more in headers.items():
    h = fits.Header(dict(CTYPE1='RA---SIN', CTYPE2='DEC--SIN', CRPIX1=4.25, CRPIX2=2.5, CRVAL1=10.0, CRVAL2=-30.0,
                         CUNIT1='deg', CUNIT2='deg', BUNIT='Jy/pixel', **more))
    fits.PrimaryHDU(np.arange(48, dtype='f4').reshape(6, 8), h).writeto(f'{folder}/{name}.fits')
    if name == 'degenerate':
        continue
    ra, dec = np.deg2rad(WCS(h).wcs_pix2world([[2, 5]], 0)[0])
    ra0, dec0 = np.deg2rad([10.0, -30.0])
    east = np.cos(dec) * np.sin(ra - ra0)
    north = np.sin(dec) * np.cos(dec0) - np.cos(dec) * np.sin(dec0) * np.cos(ra - ra0)
    print(name, np.rad2deg(east) * 3600, np.rad2deg(north) * 3600)
)";

}  // namespace

TEST_CASE("pixels of any shape and direction lie where astropy has them", "[io]") {
  const TemporaryFolder folder;
  std::istringstream places(run_python(places_script, {folder.path().string()}));
  std::string name;
  double east = 0, north = 0;
  int seen = 0;
  while (places >> name >> east >> north) {
    INFO(name);
    const auto read = io::read_any_fits(folder / (name + ".fits"));
    CHECK(read.lattice.has_value() == (name != "upright"));
    ++seen;
    if (!read.lattice) continue;
    const auto place = read.lattice->sky(5, 2);
    CHECK(place.east == Approx(east).margin(1e-7));
    CHECK(place.north == Approx(north).margin(1e-7));
    CHECK(read.image.cube[0][5][2].item<double>() == 42);
    CHECK(read.image.cell_size * read.image.cell_size == Approx(read.lattice->area()));
    CHECK_THROWS_AS(io::read_fits(folder / (name + ".fits")), DataError);
  }
  CHECK(seen == 7);
  CHECK(same(io::read_any_fits(folder / "upright.fits").image.cube, io::read_fits(folder / "upright.fits").cube));
  CHECK_THROWS_WITH(io::read_any_fits(folder / "degenerate.fits"), ContainsSubstring("have no area"));
}
