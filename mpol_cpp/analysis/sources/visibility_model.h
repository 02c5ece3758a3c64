#pragma once

#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol {

using torch::Tensor;

/// A part of the sky whose visibilities are known at any baseline without an image: a point, a Gaussian, a ring, a disc, or a
/// profile in radius. Such parts are torch modules with parameters in the units of astronomy (Jy, arcsec, radian), which an
/// optimizer of LibTorch fits by themselves and SourceLikelihood together with an image.
///
/// One of your own derives from mpol::Module<Yours> and from this interface, and overrides one function, visibilities.
class VisibilityModel {
 public:
  VisibilityModel() = default;
  VisibilityModel(const VisibilityModel&) = default;
  VisibilityModel& operator=(const VisibilityModel&) = default;
  VisibilityModel(VisibilityModel&&) = default;
  VisibilityModel& operator=(VisibilityModel&&) = default;
  virtual ~VisibilityModel() = default;

  /// @param u, v  of one shape, float64, wavelengths, on the parameters' device
  /// @return      in their shape, complex of the parameters' precision, Jy; differentiable once with respect to the parameters
  virtual Tensor visibilities(const Tensor& u, const Tensor& v) = 0;

  /// Loose visibilities. @return  (nchan, nvis) complex, Jy; one channel where all share their baselines
  Tensor loose(const Baselines& baselines);
  /// Those at the cells of a grid, as FourierCube gives them of an image. @return  (1, npix, npix) complex, packed, Jy
  Tensor packed(const GridCoords& coords);

  /// The module that holds its parameters, by default this very object. @throws ValueError where it is none
  virtual torch::nn::Module& as_module();

 private:
  torch::Device device();
};

/// The sum of several parts of the sky. @param parts  at least one  @param u, v  as VisibilityModel takes them
/// @throws ValueError without parts
Tensor sum_of_visibilities(const std::vector<std::shared_ptr<VisibilityModel>>& parts, const Tensor& u, const Tensor& v);

}  // namespace mpol
