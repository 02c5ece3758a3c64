#pragma once

#include <cstdint>
#include <memory>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/fourier/nufft_options.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol {

class NufftPlans;

/// Visibilities of an image at any u, v, and the exact adjoint of that, by nonuniform FFTs on the CPU or a CUDA device, where
/// the tensors are:
///
///   V_k = cell_size^2 sum_{m,l} I(m,l) exp(-2 pi i (u_k l + v_k m))
///
/// The points are sorted once per device and dtype, at the first use. Results are bitwise the same for any number of
/// threads; on a GPU too they repeat bit for bit, nothing waits for the device, and once used it can be recorded as a CUDA
/// graph. Of other accelerators images and visibilities are brought to the CPU and back. At its first use on a GPU a small
/// transform is compared with the CPU's. No parameters, no state.
class NufftImpl : public Module<NufftImpl> {
 public:
  /// @param baselines  one set for all channels or one per channel
  /// @param nchan      channels of image and visibilities
  /// @throws ShapeError when baselines of several channels are not nchan; DataError for baselines beyond 1/(2 dl)
  NufftImpl(const GridCoords& coords, Baselines baselines, std::int64_t nchan, NufftOptions options = {});
  void reset() override {}

  /// @param sky  (…, nchan, npix, npix) float32 or float64, Jy/arcsec^2, sky orientation
  /// @return     (…, nchan, nvis) complex, Jy; differentiable to any order
  /// @throws ShapeError, DeviceError; ValueError when the tolerance cannot be had in this dtype
  Tensor forward(const Tensor& sky) const;
  /// For every x and y, Re <forward(x), y> = <x, adjoint(y)>.
  /// @param visibilities  (…, nchan, nvis) complex
  /// @return              (…, nchan, npix, npix) real, sky orientation
  Tensor adjoint(const Tensor& visibilities) const;

  const GridCoords& coords() const;     ///< the grid of the images
  const Baselines& baselines() const;   ///< where the visibilities are
  std::int64_t nchan() const;           ///< of image and visibilities
  const NufftOptions& options() const;  ///< as they were given
  /// Bytes of the plans made so far, on every device.
  std::int64_t memory_bytes() const;

 private:
  friend NufftPlans& nufft_plans(const NufftImpl& nufft);

  std::shared_ptr<NufftPlans> plans_;
};

TORCH_MODULE(Nufft);

}  // namespace mpol
