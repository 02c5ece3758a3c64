#include <mpol_cpp/fourier/fourier_cube.h>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fft/real_fft.h>

namespace mpol {
namespace {

void check_shape(const Tensor& cube, const GridCoords& coords) {
  if (cube.dim() < 2 || cube.size(-1) != coords.npix() || cube.size(-2) != coords.npix()) {
    throw ShapeError(
        fmt::format("the cube has shape {}; it must be (…, {}, {})", cube.sizes().vec(), coords.npix(), coords.npix()));
  }
}

}  // namespace

Tensor FourierCubeImpl::forward(const Tensor& sky) const {
  check_shape(sky, coords_);
  return ops::full_plane_fft(sky_to_packed(sky)) * coords_.cell_area();
}

Tensor FourierCubeImpl::adjoint(const Tensor& visibilities) const {
  check_shape(visibilities, coords_);
  return packed_to_sky(ops::full_plane_adjoint(visibilities)) * coords_.cell_area();
}

}  // namespace mpol
