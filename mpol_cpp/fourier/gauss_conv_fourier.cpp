#include <mpol_cpp/fourier/gauss_conv_fourier.h>

#include <cmath>

#include <ATen/ops/exp.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/gaussian_kernel.h>

namespace mpol {

Tensor gaussian_beam_taper(const Beam& beam, const GridCoords& coords) {
  const auto u = coords.packed_u(), v = coords.packed_v();
  const double to_sigma = units::arcsec / units::fwhm_per_sigma;
  const double c = std::cos(beam.position_angle), s = std::sin(beam.position_angle);
  const auto along_minor = beam.minor * to_sigma * (u * c - v * s), along_major = beam.major * to_sigma * (u * s + v * c);
  return at::exp(-2 * units::pi * units::pi * (along_minor.square() + along_major.square()));
}

GaussConvFourierImpl::GaussConvFourierImpl(GridCoords coords, std::vector<Beam> beams)
    : coords_(coords), beams_(std::move(beams)) {
  check_beams(beams_, coords_);
  reset();
}

void GaussConvFourierImpl::reset() {
  std::vector<Tensor> tapers;
  for (const auto& beam : beams_) {
    const auto taper = gaussian_beam_taper(beam, coords_);
    const auto partner = taper.flip({0, 1}).roll({1, 1}, {0, 1});  // differs only on the outermost row and column
    const auto even = 0.5 * (taper + partner);                     // what is left of it in a real image
    // Along a row of a sky image l decreases: u of a column is minus that of the packed one.
    tapers.push_back(even.flip({1}).roll({1}, {1}).narrow(1, 0, coords_.npix() / 2 + 1).contiguous());
  }
  tapers_ = register_metadata("tapers", at::stack(tapers));
}

Tensor GaussConvFourierImpl::forward(const Tensor& sky) const {
  check_beams_fit(static_cast<std::int64_t>(beams_.size()), sky, coords_);
  const auto npix = coords_.npix();
  return at::fft_irfft2(at::fft_rfft2(sky) * tapers_.to(sky.scalar_type()), {{npix, npix}});
}

}  // namespace mpol
