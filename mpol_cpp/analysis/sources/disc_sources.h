#pragma once

#include <torch/types.h>

#include <mpol_cpp/analysis/disc_fit/disc_models.h>
#include <mpol_cpp/analysis/disc_geometry.h>
#include <mpol_cpp/analysis/sources/visibility_model.h>
#include <mpol_cpp/device/module.h>

namespace mpol {

namespace detail {
/// What a source of one shape is made of; undefined tensors stand for the numbers of the start.
struct SourceTensors {
  Tensor flux, size, width, inclination, position_angle, offset;
};

/// The parameters that a source of that shape has, float64, with the values of the start.
/// @throws ValueError for one that is not finite, or a negative size or width
SourceTensors source_start(const DiscModel& start);
/// As disc_visibilities(), differentiable with respect to the tensors.
Tensor source_visibilities(DiscShape shape, const SourceTensors& tensors, const Tensor& u, const Tensor& v);
/// The values of the tensors.
DiscModel source_model(DiscShape shape, const SourceTensors& tensors);
}  // namespace detail

/// The base of sources with the visibilities of DiscModel. Parameters, float64 unless cast, each () but the last:
///
///   flux (Jy); size, of a broad ring also width (arcsec, in the plane of the disc); inclination, position_angle (radian);
///   offset (2), arcsec to the East and North of the phase centre
///
/// A point has flux and offset alone. What shall stay as it is gets `requires_grad_(false)`. Signs of size and width mean
/// nothing. At an inclination of 0, and where size or width is 0, their gradient is zero: start elsewhere. Visibilities are
/// computed in float64 and again for the gradient, block by block, so that neither keeps more than the result; they wait for the
/// parameters where these are on a GPU.
template <typename Derived>
class SourceModule : public Module<Derived>, public VisibilityModel {
 public:
  void reset() override {
    tensors_ = detail::source_start(start_);
    const auto own = [this](const char* name, Tensor& tensor) {
      if (tensor.defined()) tensor = this->register_parameter(name, tensor);
    };
    own("flux", tensors_.flux);
    own("size", tensors_.size);
    own("width", tensors_.width);
    own("inclination", tensors_.inclination);
    own("position_angle", tensors_.position_angle);
    own("offset", tensors_.offset);
  }

  Tensor visibilities(const Tensor& u, const Tensor& v) override {
    return detail::source_visibilities(start_.shape, tensors_, u, v);
  }

  /// The parameters as they are now.
  DiscModel model() const { return detail::source_model(start_.shape, tensors_); }

 protected:
  /// @throws ValueError for a number that is not finite, or a negative size or width
  explicit SourceModule(const DiscModel& start) : start_(start) { SourceModule::reset(); }

 private:
  DiscModel start_;
  detail::SourceTensors tensors_;
};

/// An unresolved source: flux exp(-2 pi i (u East + v North)).
class PointSourceImpl : public SourceModule<PointSourceImpl> {
 public:
  /// @param flux  Jy  @param east, north  of the phase centre, arcsec
  explicit PointSourceImpl(double flux, double east = 0, double north = 0)
      : SourceModule({.shape = DiscShape::point,
                      .flux = flux,
                      .size = 0,
                      .width = 0,
                      .geometry = {.offset_east = east, .offset_north = north}}) {}
};
TORCH_MODULE(PointSource);

/// A Gaussian disc: flux exp(-2 pi^2 sigma^2 q^2).
class GaussianSourceImpl : public SourceModule<GaussianSourceImpl> {
 public:
  /// @param flux  Jy  @param fwhm  along the major axis, arcsec
  GaussianSourceImpl(double flux, double fwhm, const DiscGeometry& geometry = {})
      : SourceModule({.shape = DiscShape::gaussian, .flux = flux, .size = fwhm, .width = 0, .geometry = geometry}) {}
};
TORCH_MODULE(GaussianSource);

/// A ring, infinitely thin or with a Gaussian profile: flux J0(2 pi q radius), times the transform of that Gaussian.
class RingSourceImpl : public SourceModule<RingSourceImpl> {
 public:
  /// A thin ring. @param flux  Jy  @param radius  arcsec
  RingSourceImpl(double flux, double radius, const DiscGeometry& geometry = {})
      : SourceModule({.shape = DiscShape::ring, .flux = flux, .size = radius, .width = 0, .geometry = geometry}) {}
  /// A broad one. @param width  full width at half maximum, arcsec
  RingSourceImpl(double flux, double radius, double width, const DiscGeometry& geometry)
      : SourceModule({.shape = DiscShape::broad_ring, .flux = flux, .size = radius, .width = width, .geometry = geometry}) {}
};
TORCH_MODULE(RingSource);

/// A disc of constant brightness: flux 2 J1(z)/z, z = 2 pi q radius.
class DiscSourceImpl : public SourceModule<DiscSourceImpl> {
 public:
  /// @param flux  Jy  @param radius  arcsec
  DiscSourceImpl(double flux, double radius, const DiscGeometry& geometry = {})
      : SourceModule({.shape = DiscShape::disc, .flux = flux, .size = radius, .width = 0, .geometry = geometry}) {}
};
TORCH_MODULE(DiscSource);

}  // namespace mpol
