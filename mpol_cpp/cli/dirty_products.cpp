#include <mpol_cpp/cli/dirty_products.h>

#include <ATen/ops/fft_fft2.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/gridding/dirty_imager.h>

namespace mpol::cli {
namespace {

DirtyImagerOptions briggs(ImageUnit unit) { return DirtyImagerOptions().weighting(Weighting::briggs).robust(0.5).unit(unit); }

}  // namespace

std::vector<io::FitsBeam> fits_beams(const DirtyImager& imager) {
  std::vector<io::FitsBeam> beams;
  for (const auto& beam : imager.fitted_beam()) {
    if (!beam) return {};  // a header cannot say that one channel has no beam
    beams.push_back({.major = beam->bmaj, .minor = beam->bmin, .position_angle = beam->bpa * units::degree});
  }
  return beams;
}

DirtyProducts dirty_products(const GriddedDataset& dataset, const Tensor& sky) {
  const DirtyImager imager(dataset, briggs(ImageUnit::jy_per_beam));
  DirtyProducts products{.dirty = imager.image(), .residual = {}, .beams = fits_beams(imager)};
  const auto model = at::fft_fft2(sky_to_packed(sky)) * dataset->coords().cell_area();  // (nchan, npix, npix) Jy
  products.residual = products.dirty - imager.image_of(dataset->at_cells(model));
  return products;
}

Tensor dirty_start(const GriddedDataset& dataset) { return DirtyImager(dataset, briggs(ImageUnit::jy_per_arcsec2)).image(); }

}  // namespace mpol::cli
