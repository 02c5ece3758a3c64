#include <mpol_cpp/models/image_cube.h>

#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

Tensor flux(const Tensor& sky_cube, const GridCoords& coords) { return sky_cube.sum({-2, -1}) * coords.cell_area(); }

Tensor ImageCubeImpl::forward(const Tensor& sky) {
  if (sky.dim() < 3 || sky.size(-1) != coords_.npix() || sky.size(-2) != coords_.npix()) {
    throw ShapeError(
        fmt::format("the image has shape {}; it must be (…, nchan, {}, {})", sky.sizes().vec(), coords_.npix(), coords_.npix()));
  }
  sky_cube_ = sky;
  return sky;
}

const Tensor& ImageCubeImpl::sky_cube() const {
  if (!sky_cube_.defined()) throw ValueError("no image has been computed yet: call forward() first");
  return sky_cube_;
}

Tensor ImageCubeImpl::packed_cube() const { return sky_to_packed(sky_cube()); }

}  // namespace mpol
