#pragma once

#include <memory>

#include <mpol_cpp/solvers/admm.h>
#include <mpol_cpp/solvers/convex_objective.h>

namespace mpol {

/// Options of ObjectiveModel.
struct ObjectiveModelOptions {
  double tolerance = 0.03;            ///< of the residual of conjugate gradients, beside that at their start; > 0
  std::int64_t most_iterations = 50;  ///< of them, >= 1
};

/// The smooth part f of a ConvexObjective as ADMM wants it. f is quadratic with the second derivative H; z being the images at
/// which its gradient is known,
///
///   x = argmin f(x) + rho |A x - v|^2/2 = z + (H + rho A*A)^-1 (rho A*(v - A z) - f'(z))
///
/// Where H is diagonal in the Fourier transform of the image (the gridded likelihood of free pixels) that is one transform pair.
/// Elsewhere conjugate gradients from 0 solve it, preconditioned by such a diagonal where H is near enough to one (the gridded
/// likelihood behind the Hann convolution: all but the border of the image).
class ObjectiveModel : public AdmmModel {
 public:
  using Options = ObjectiveModelOptions;  ///< its options
  /// @param images    z, and its storage: (problems, nchan, npix, npix)
  /// @param gradient  f'(z), like images; both are looked at when minimize() is called
  ObjectiveModel(ConvexObjective& function, Tensor images, Tensor gradient, Options options = {});

  Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& x) override;
  Tensor value(const Tensor& x) override;

  /// About the largest eigenvalue of H in any image.
  double curvature() const { return curvature_; }
  /// |(H - its Fourier diagonal) x| / |H x| of an image of noise.
  double distance_to_diagonal() const { return distance_to_diagonal_; }

 private:
  Tensor conjugate_gradients(Tensor residual, const Tensor& rho);
  /// (diagonal + rho)^-1 times the image.
  Tensor solved(const Tensor& image, const Tensor& rho) const;

  ConvexObjective& function_;
  Tensor images_, gradient_;
  Options options_;
  Tensor diagonal_;  // of H in the half plane, (problems, nchan, npix, npix/2 + 1)
  double curvature_ = 0, distance_to_diagonal_ = 0;
};

}  // namespace mpol
