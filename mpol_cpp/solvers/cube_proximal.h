#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/distributed/channel_neighbors.h>
#include <mpol_cpp/regularizers/base/cube_weights.h>
#include <mpol_cpp/solvers/tv_proximal.h>

namespace mpol {

namespace ops {
template <typename T>
class CubeDual;
class GpuCubeDual;
}  // namespace ops

/// The proximal map of total variation of images and slopes, of what joins channels, of wavelets and of pixels' signs, in one:
///
///   argmin_x sum_c |x_c - q_c|^2/(2 s_c) + k_1 TV(S x) + k_2 sum |E S x| + k_3 sum_pixels |S x|_2 + k_4 sum |B S x|
///            + k_5 sum |W S x|,   x >= 0   or   + k_0 sum |x|
///
/// where TV, S and M are those of TvProximal, E x = x_{c+1} - x_c, |x|_2 the norm of a pixel's spectrum, B the second differences
/// of losses::tv_slope and W the eight transforms of ops::SaraBases, by accelerated projected gradient steps on the dual problem
/// of all together, u = (u_1, ..., u_5):
///
///   x_c = cut(q_c - s_c S (k_1 D^T v_1 + k_2 E^T v_2 + k_3 v_3 + k_4 B^T v_4 + k_5 W^T v_5)_c) M
///   u_j' = v_j + sigma_j k_j (D S x, E S x, S x, B S x, W S x)_j, cut: |u_1|, |u_4| <= 1 each vector, |u_2| <= 1,
///          |u_3| <= 1 each spectrum, |u_5| <= 1
///   v'   = u' + (t-1)/t' (u' - u),  begun anew with t = 1, v' = u' where sum_j <v_j - u_j', u_j' - u_j>/sigma_j > 0
///
/// where cut(x) is max(x, 0) or, of pixels of either sign, x gone towards 0 by s_c k_0, and with the sigma_j of
/// ops::CubeDualSteps. Where no problem has k_2 to k_5 this is TvProximal, bit for bit. Every call begins with the dual images
/// that the last one left. Without k_5 by ops::CubeDual on the CPU and by ops::GpuCubeDual on a GPU, else by LibTorch's
/// operations, with the kernels of ops::wavelet_analysis. Source: Beck & Teboulle 2009; Condat 2013 (several duals).
class CubeProximal {
 public:
  using By = TvProximal::By;    ///< who computes it
  using Weights = CubeWeights;  ///< k_0 to k_5 of each problem; or of each image, which are then problems of their own
  /// @param like     (problems, nchan, npix, npix): shape, dtype and device of the images
  /// @param mask       1 or 0, like the images; undefined: all may shine
  /// @param neighbors  who has the other channels of the same problems: all of them call the same functions with the same numbers
  /// of
  ///                   passes. On the CPU by the kernels, elsewhere by LibTorch's operations; null: nobody
  CubeProximal(const Tensor& like, bool hann, Tensor mask, Weights weights, By by = By::kernels,
               std::shared_ptr<ChannelNeighbors> neighbors = {});

  /// @param q       (problems, nchan, npix, npix)
  /// @param steps   s of each image, > 0
  /// @param passes  dual steps of each problem
  /// @param x       like q, another tensor; overwritten
  void apply(const Tensor& q, const std::vector<double>& steps, const std::vector<std::int64_t>& passes, Tensor& x);
  /// The same with numbers that lie on the device of the images, so that nothing waits for them. Not where the CPU's kernels
  /// compute.
  /// @param steps  (problems, nchan) float64
  void apply(const Tensor& q, const Tensor& steps, const ops::DevicePasses& passes, Tensor& x);

  /// The dual images (2 to 15, problems, nchan, npix, npix) of the last call: u_1, and u_2, u_3, the three of u_4 and the eight
  /// of u_5 where they have weights; zeros before the first.
  Tensor dual() const;
  /// @throws FileError unless it has the shape and dtype of dual()
  void set_dual(const Tensor& dual);
  /// What the dual images take from every base pixel of these channels: S (k_1 D^T u_1 + k_2 E^T u_2 + k_3 u_3 + k_4 B^T u_4 +
  /// k_5 W^T u_5), (problems, nchan, npix, npix).
  Tensor slope() const;
  /// Where the conjugates of smoothed lengths sqrt(l^2 + epsilon) are smallest: the sum of k_j sqrt(epsilon_j) sqrt(1 - t^2
  /// |u_j|^2) over everything that has a length, float64 of each problem; of several ranks this one's part.
  /// @param epsilons  of u_1, u_2, u_3, u_4
  /// @param t         float64, of each problem, in [0, 1]
  Tensor smoothing(const std::vector<double>& epsilons, const Tensor& t) const;

 private:
  std::int64_t plane_of_spectra() const { return weights_.has_channels() ? 3 : 2; }
  std::int64_t plane_of_curvature() const { return plane_of_spectra() + (weights_.has_spectra() ? 1 : 0); }
  std::int64_t plane_of_bases() const { return plane_of_curvature() + (weights_.has_curvature() ? 3 : 0); }
  Tensor of_each_image(const Tensor& of_problems) const;
  Tensor seen(const Tensor& images) const;
  /// E^T of duals between channels, and E of images, with the neighbors' nearest ones.
  Tensor adjoint_between(const Tensor& dual) const;
  Tensor between(const Tensor& images) const;
  /// Sums of squares over the channels of all ranks, (problems, 1, npix, npix).
  Tensor squares_of_spectra(const Tensor& images) const;
  Tensor unsmoothed_slope(const Tensor& dual) const;
  Tensor primal(const Tensor& q, const Tensor& steps, const Tensor& dual) const;
  void ascend(const Tensor& q, const Tensor& steps, ops::DualAscent ascent, Tensor& x);
  /// By how much pixels of either sign go towards 0, float64 like the steps; undefined: none is negative.
  Tensor thresholds(const Tensor& steps) const;

  Weights weights_;
  std::shared_ptr<CubeProximal> apart_;  // of images with weights of their own, each a problem: it does everything
  bool hann_;
  Tensor mask_, dual_;                   // dual_ undefined where others keep it
  std::optional<TvProximal> variation_;  // where nothing else has a weight; else one of those below, or dual_
  std::shared_ptr<ops::CubeDual<float>> single_;
  std::shared_ptr<ops::CubeDual<double>> double_;
  std::shared_ptr<ops::GpuCubeDual> on_gpu_;
  struct WeightTensors {
    Tensor variation, channels, spectra, curvature, bases;  // (problems, 1, 1, 1), like the images
    Tensor double_variation;                                // the same in float64
    Tensor magnitude;                                       // float64; undefined: no pixel is negative
  } problem_weights_;
  Tensor counted_, curved_;  // curved_ undefined without second differences
  std::int64_t nchan_;
  std::shared_ptr<ChannelNeighbors> neighbors_;
};

}  // namespace mpol
