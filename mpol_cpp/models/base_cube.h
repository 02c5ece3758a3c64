#pragma once

#include <functional>
#include <optional>
#include <string>

#include <torch/arg.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/visibilities/stokes.h>

namespace mpol {

/// What base pixels become.
enum class PixelSign {
  positive,  ///< intensities that are not negative
  either     ///< brightness of either sign: Stokes Q, U and V, absorption, differences
};

/// That of an image of a Stokes parameter or hand.
PixelSign natural_sign(Stokes stokes);

/// A differentiable, elementwise map from base pixels (any real number) to intensities, with its inverse.
struct PixelMapping {
  std::string name;  ///< "softplus", "nonnegative…" and "either sign…" are the library's own, which faster steps know
  /// From base pixels, of any shape, dtype and device; differentiable.
  std::function<Tensor(const Tensor&)> forward;
  std::function<Tensor(const Tensor&)> inverse;  ///< of intensities > 0 (PixelSign::either: any): where a start image comes from
  PixelSign sign = PixelSign::positive;          ///< what it makes
};

/// I = softplus(b) M = ln(1 + e^b) M (beta 1, threshold 20); its inverse b = I + ln(1 - e^-I), I > 0.
/// @param mask  1 where a pixel may shine, 0 where not, broadcastable to the cube; undefined: every pixel may
PixelMapping softplus_mapping(const Tensor& mask = {});

/// I = max(b, 0) M: base pixels that are intensities themselves. The image is a convex function of them, which POGM needs; Adam
/// and the like, which walk along gradients, want softplus_mapping().
/// @param mask  as above
PixelMapping nonnegative_mapping(const Tensor& mask = {});

/// I = b M: pixels of either sign. As nonnegative_mapping() makes them, the image is a convex function of them.
/// @param mask  as above
PixelMapping either_sign_mapping(const Tensor& mask = {});

/// Options of a BaseCube, and of the models that have one.
struct BaseCubeOptions {
  /// A cube of one channel, unless nchan() says more. @param coords  the grid of the image
  BaseCubeOptions(GridCoords coords) : coords_(coords) {}  // NOLINT: implicit, so that a call reads well
  /// The grid of the image.
  TORCH_ARG(GridCoords, coords);
  /// Channels of the image.
  TORCH_ARG(std::int64_t, nchan) = 1;
  /// Start value of every base pixel; v0.3 default (v0.1: 0.05).
  TORCH_ARG(double, start) = -3.0;
  /// Start values (…, nchan, npix, npix), sky orientation, finite; takes the place of `start` and `nchan` when defined.
  TORCH_ARG(Tensor, base_cube);
  /// How base pixels become intensities.
  TORCH_ARG(PixelMapping, pixel_mapping) = softplus_mapping();
  /// The dtype of the parameters; when unset that of `base_cube`, or float32 without one.
  TORCH_ARG(std::optional<torch::Dtype>, dtype) = std::nullopt;
};

/// The parameters of an image: base pixels that a mapping makes intensities.
///
/// State dict: `base_cube` (…, nchan, npix, npix), sky orientation; leading dimensions are independent problems.
class BaseCubeImpl : public Module<BaseCubeImpl> {
 public:
  /// @throws ValueError for nchan < 1, a start that is not finite, a dtype that is neither float32 nor float64, or a mapping
  ///         without a function; ShapeError for a base cube of another grid
  explicit BaseCubeImpl(BaseCubeOptions options);
  void reset() override;
  /// Intensities (…, nchan, npix, npix), Jy/arcsec^2, sky orientation.
  Tensor forward() const;
  /// The parameters (…, nchan, npix, npix), sky orientation.
  const Tensor& base_cube() const { return base_cube_; }
  const BaseCubeOptions& options() const { return options_; }  ///< as given, with the dtype that was chosen

 private:
  BaseCubeOptions options_;
  Tensor base_cube_;
};

TORCH_MODULE(BaseCube);

}  // namespace mpol
