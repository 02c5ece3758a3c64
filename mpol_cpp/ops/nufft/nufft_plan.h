#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <mpol_cpp/core/accumulate.h>
#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/nufft/nufft_coordinates.h>

namespace mpol::ops {

/// What a nonuniform transform is planned for.
struct NufftSettings {
  std::int64_t npix;  ///< even
  double pixel;       ///< width of a pixel, radian
  double tolerance;   ///< error relative to the norm of the result
};

template <typename T>
class NufftDirtySums;

/// Nonuniform transforms between real images x in sky orientation and visibilities at fixed u, v (wavelengths), on the
/// CPU:
///
///   type 2:  V_k = scale sum_{m,l} x(m,l) exp(-2 pi i (u_k l + v_k m))
///   type 1:  g(m,l) = scale Re sum_k V_k exp(+2 pi i (u_k l + v_k m)), the adjoint of type 2
///
/// The image, divided by the window's transform, is transformed on a fine grid of twice its size; the window interpolates
/// there. Points are folded to u >= 0 and sorted into tiles once. All sums have a fixed order: results are bitwise the
/// same for any number of threads, and for an image alone or among others. Several threads may call, one at a time is served.
/// Source: Dutt & Rokhlin 1993; Barnett, Magland & af Klinteberg 2019 for windows, tiles and the choice of the fine grid.
template <typename T>
class NufftPlan {
 public:
  using Complex = std::complex<T>;

  /// @param u, v        (count) wavelengths, finite
  /// @param max_abs_u   their largest magnitudes, <= 1/(2 pixel)
  NufftPlan(const NufftSettings& settings, const double* u, const double* v, std::int64_t count, double max_abs_u,
            double max_abs_v);
  /// The same of coordinates that a function gives (nufft_coordinates.h).
  NufftPlan(const NufftSettings& settings, const NufftCoordinateSource& coordinates, std::int64_t count, double max_abs_u,
            double max_abs_v);
  ~NufftPlan();
  NufftPlan(const NufftPlan&) = delete;
  NufftPlan& operator=(const NufftPlan&) = delete;

  std::int64_t points() const;

  /// Transforms several images at the same points: the window is evaluated once for a few of them.
  /// @param images        (npix, npix) each, contiguous
  /// @param visibilities  (points) each, in the order of u and v
  void type2(std::span<const T* const> images, double scale, std::span<Complex* const> visibilities) const;
  void type2(const T* image, double scale, Complex* visibilities) const { type2({&image, 1}, scale, {&visibilities, 1}); }
  void type1(std::span<const Complex* const> visibilities, double scale, std::span<T* const> images, Accumulate accumulate) const;
  void type1(const Complex* visibilities, double scale, T* image, Accumulate accumulate) const {
    type1({&visibilities, 1}, scale, {&image, 1}, accumulate);
  }

  /// Transforms of many points in blocks, each with a plan of its own, which all have the same settings, max_abs_u and max_abs_v:
  /// their fine grids have the same cells. For type 1 every plan adds its points to those of each image, and any one of them
  /// makes the images of these; for type 2 any one of them makes the cells of an image, at whose points each finds its values.
  using Cells = AlignedArray<Complex>;
  Cells empty_cells() const;
  void add_to(std::span<const Cells* const> cells, std::span<const Complex* const> visibilities) const;
  void to_cells(const T* image, double scale, const Cells& cells) const;
  void interpolate(const Cells& cells, Complex* visibilities) const;
  /// The cells are used up. It takes `cells_to_image_bytes`, the cells themselves among them.
  void to_image(const Cells& cells, double scale, T* image) const;
  std::int64_t cells_to_image_bytes() const;

  /// Data for `fused`, (points) each in the plan's own order, with room for whole vectors.
  struct Data;
  /// @tparam Real  of the numbers as they lie in memory, float or double
  template <typename Real>
  std::shared_ptr<const Data> sorted(const std::complex<Real>* visibilities, const Real* weights) const;

  /// An image beside the data that it is compared with. Several may add to the same gradient.
  struct Comparison {
    const T* image;
    const Data* data;
    T* gradient;
  };
  /// sum w |V(x) - d|^2 of each, and its gradient with respect to x; each visibility is read once.
  std::vector<double> fused(std::span<const Comparison> comparisons, double scale, Accumulate accumulate) const;
  double fused(const T* image, double scale, const Data& data, T* gradient, Accumulate accumulate) const {
    const Comparison one{image, &data, gradient};
    return fused({&one, 1}, scale, accumulate).front();
  }

  std::int64_t memory_bytes() const;

 private:
  friend class NufftDirtySums<T>;
  class Transforms;
  std::unique_ptr<Transforms> transforms_;
};

/// Type-1 transforms of w d, and of the weights w alone, of any number of points, added block by block: memory is that of the
/// grids and of one block, and the grids are transformed once. A block whose points are near each other touches few tiles and
/// takes little time.
template <typename T>
class NufftDirtySums {
 public:
  NufftDirtySums(const NufftSettings& settings, double max_abs_u, double max_abs_v);
  ~NufftDirtySums();
  NufftDirtySums(const NufftDirtySums&) = delete;
  NufftDirtySums& operator=(const NufftDirtySums&) = delete;

  /// Visibilities d and weights w of (count) points.
  void add(const double* u, const double* v, std::int64_t count, const std::complex<double>* visibilities, const double* weights);
  /// Ends the sums.
  void images(double scale, T* dirty, double beam_scale, T* beam);

 private:
  NufftSettings settings_;
  double max_abs_u_, max_abs_v_;
  std::unique_ptr<NufftPlan<T>> plan_;  // of the newest block
};

}  // namespace mpol::ops
