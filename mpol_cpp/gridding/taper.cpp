#include <mpol_cpp/gridding/taper.h>

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {

Taper gaussian_taper(double fwhm) {
  if (!std::isfinite(fwhm) || fwhm < 0) {
    throw ValueError(fmt::format("the taper's FWHM is {} arcsec; it must be finite and at least 0", fwhm));
  }
  const double sigma = fwhm * units::arcsec / units::fwhm_per_sigma;  // radian
  const double exponent = -2 * units::pi * units::pi * sigma * sigma;
  return [exponent](const Tensor& u, const Tensor& v) { return (u.square() + v.square()).mul_(exponent).exp_(); };
}

}  // namespace mpol
