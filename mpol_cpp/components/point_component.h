#pragma once

#include <vector>

#include <mpol_cpp/serialize/array_room.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// A source without any extent, at its own place between pixels.
struct PointComponent {
  double east = 0, north = 0;  ///< arcsec from the middle of images of the data
  std::vector<double> flux;    ///< Jy, of each image channel

  // Standard errors by the weights, and by what source and image may have of each other (fit_points).
  double place_error = 0;               ///< arcsec, of the one place for all channels; 0: not known
  std::vector<double> flux_error = {};  ///< Jy, of each image channel; empty: not known
};

/// exp(-2 pi i (u l + v m)), what a source of 1 Jy shows at points u, v of the uv plane, wavelengths: (n) complex128.
Tensor point_visibilities(const PointComponent& source, const Tensor& u, const Tensor& v);

/// The same data less those of point sources, in their dtype, with their weights.
/// @param channels  which data channels feed which image channel
/// @param room      for the data
/// @throws ValueError for a source with another number of fluxes than there are image channels
Visibilities without_points(const Visibilities& visibilities, const ChannelMap& channels,
                            const std::vector<PointComponent>& sources, const ArrayRoom& room = {});

}  // namespace mpol
