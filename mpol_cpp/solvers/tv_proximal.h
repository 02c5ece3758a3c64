#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/types.h>

namespace mpol {

namespace ops {
template <typename T>
class TvDual;
class GpuTvDual;
class DualAscent;
struct DevicePasses;
}  // namespace ops

using torch::Tensor;

/// The proximal map of total variation and of pixels' signs,
///
///   argmin_x |x - q|^2/2 + k TV(S x),  x >= 0   or   argmin_x |x - q|^2/2 + k TV(S x) + k_0 |x|_1,   TV(u) = sum sqrt(|D u|^2)
///   over the block of losses::tv_image
///
/// where S is the Hann convolution of HannConvCube or nothing, by accelerated projected gradient steps on the dual problem:
///
///   x = cut(q - k S D^T v) M,   p' = v + D S x / (8 k), each vector longer than 1 cut to length 1
///   v' = p' + (t-1)/t' (p' - p),   begun anew with t = 1, v = p' where (v - p').(p' - p) > 0
///
/// cut(x) is max(x, 0) or, of pixels of either sign, x gone towards 0 by k_0; M is 1 where a pixel may shine. Every call begins
/// with the dual image that the last one left (a warm start): near the end of a fit a few passes do. On the CPU by ops::TvDual,
/// on a GPU by ops::GpuTvDual, elsewhere by LibTorch's operations. Source: Beck & Teboulle 2009.
class TvProximal {
 public:
  /// Who computes it.
  enum class By {
    kernels,      ///< ops::TvDual on the CPU, ops::GpuTvDual on a GPU
    gpu_kernels,  ///< ops::GpuTvDual, emulated on the CPU: slow, for tests
    tensors       ///< LibTorch's operations, on any device
  };
  /// @param like  (problems, nchan, npix, npix): shape, dtype and device of the images
  /// @param mask  1 or 0, like the images; undefined: all may shine
  TvProximal(const Tensor& like, bool hann, Tensor mask, By by = By::kernels);

  /// @param q        (problems, nchan, npix, npix)
  /// @param weights  k of each image, >= 0; where it is 0 only positivity counts
  /// @param passes   dual steps of each problem
  /// @param x        like q, another tensor; overwritten
  /// @param thresholds  k_0 of each image, >= 0; empty: no pixel is negative
  void apply(const Tensor& q, const std::vector<double>& weights, const std::vector<std::int64_t>& passes, Tensor& x,
             const std::vector<double>& thresholds = {});
  /// The same with numbers that lie on the device of the images, so that nothing waits for them. Not where the CPU's kernels
  /// compute.
  /// @param weights     (problems, nchan, 1, 1) float64
  /// @param thresholds  like weights; undefined: no pixel is negative
  void apply(const Tensor& q, const Tensor& weights, const ops::DevicePasses& passes, Tensor& x, const Tensor& thresholds = {});

  /// The dual image (2, problems, nchan, npix, npix) of the last call; zeros before the first.
  Tensor dual() const;
  /// What the dual image takes from every base pixel a unit of weight: S D^T v, (problems, nchan, npix, npix).
  Tensor slope() const;
  /// @throws FileError unless it has the shape and dtype of dual()
  void set_dual(const Tensor& dual);

 private:
  Tensor smoothed(const Tensor& images) const;
  void ascend(const Tensor& q, const Tensor& weights, const Tensor& thresholds, ops::DualAscent ascent, Tensor& x);
  Tensor primal(const Tensor& q, const Tensor& weights, const Tensor& thresholds, const Tensor& dual) const;

  bool hann_;
  Tensor mask_, dual_;                          // dual_ undefined where kernels keep it
  std::shared_ptr<ops::TvDual<float>> single_;  // at most one of them
  std::shared_ptr<ops::TvDual<double>> double_;
  std::shared_ptr<ops::GpuTvDual> on_gpu_;
  Tensor inside_;  // (npix, npix): 1 where both differences are counted
};

}  // namespace mpol
