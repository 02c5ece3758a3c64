#pragma once

#include <complex>
#include <cstdint>
#include <memory>

#include <mpol_cpp/core/precision.h>

namespace mpol::ops {

/// What a nonuniform transform is planned for.
struct NufftSettings {
  std::int64_t npix;  ///< even
  double pixel;       ///< width of a pixel, radian
  double tolerance;   ///< error relative to the norm of the result
};

/// Nonuniform transforms between a real image x in sky orientation and visibilities at fixed u, v (wavelengths), on the
/// CPU:
///
///   type 2:  V_k = scale sum_{m,l} x(m,l) exp(-2 pi i (u_k l + v_k m))
///   type 1:  g(m,l) = scale Re sum_k V_k exp(+2 pi i (u_k l + v_k m)), the adjoint of type 2
///
/// The image, divided by the window's transform, is transformed on a fine grid of twice its size; the window interpolates
/// there. Points are folded to u >= 0 and sorted into tiles once. All sums have a fixed order: results are bitwise the
/// same for any number of threads. Several threads may call, one at a time is served.
/// Source: Dutt & Rokhlin 1993; Barnett, Magland & af Klinteberg 2019 for windows, tiles and the choice of the fine grid.
template <typename T>
class NufftPlan {
 public:
  /// @param u, v        (count) wavelengths, finite
  /// @param max_abs_u   their largest magnitudes, <= 1/(2 pixel)
  NufftPlan(const NufftSettings& settings, const double* u, const double* v, std::int64_t count, double max_abs_u,
            double max_abs_v);
  ~NufftPlan();
  NufftPlan(const NufftPlan&) = delete;
  NufftPlan& operator=(const NufftPlan&) = delete;

  std::int64_t points() const;

  /// @param image         (npix, npix), contiguous
  /// @param visibilities  (points), in the order of u and v
  void type2(const T* image, double scale, std::complex<T>* visibilities) const;
  void type1(const std::complex<T>* visibilities, double scale, T* image, Accumulate accumulate) const;

  /// Data for `fused`, (points) each in the plan's own order, with room for whole vectors.
  struct Data;
  std::shared_ptr<const Data> sorted(const std::complex<double>* visibilities, const double* weights) const;

  /// sum w |V(x) - d|^2, and its gradient with respect to x; each visibility is read once.
  double fused(const T* image, double scale, const Data& data, T* gradient, Accumulate accumulate) const;

  /// Type-1 transforms of w d, and of the weights w alone.
  void dirty_and_beam(const Data& data, double scale, T* dirty, double beam_scale, T* beam) const;

  std::int64_t memory_bytes() const;

 private:
  class Transforms;
  std::unique_ptr<Transforms> transforms_;
};

}  // namespace mpol::ops
