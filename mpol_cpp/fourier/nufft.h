#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <ATen/core/ivalue.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/ops/nufft_plan.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol {

struct NufftOptions {
  /// Error relative to the norm of the result: 1e-6 to 0.1 in float32, 1e-13 to 0.1 in float64. Near an optimum, where
  /// residuals are small, the error of a gradient is larger by |data| / |residual|: train with no less than 1e-6.
  double tolerance = 1e-6;
};

/// The plans of a Nufft: one for each dtype that was used and each distinct set of baselines.
class NufftPlans : public torch::CustomClassHolder {
 public:
  NufftPlans(const GridCoords& coords, Baselines baselines, std::int64_t nchan, NufftOptions options);

  Tensor type2(const Tensor& sky);
  Tensor type1(const Tensor& visibilities);

  template <typename T>
  const ops::NufftPlan<T>& plan(std::int64_t channel);

  const GridCoords& coords() const { return coords_; }
  const Baselines& baselines() const { return baselines_; }
  std::int64_t nchan() const { return nchan_; }
  const NufftOptions& options() const { return options_; }
  std::int64_t memory_bytes() const;

 private:
  template <typename T>
  using Plans = std::vector<std::unique_ptr<ops::NufftPlan<T>>>;
  template <typename T>
  Plans<T>& plans();
  /// Of so many images, those that each set of baselines is for, which are transformed together.
  void for_each_set(std::int64_t images,
                    const std::function<void(std::int64_t channel, const std::vector<std::int64_t>& images)>& use) const;

  GridCoords coords_;
  Baselines baselines_;
  std::int64_t nchan_;
  NufftOptions options_;
  mutable std::mutex mutex_;
  Plans<float> single_;
  Plans<double> double_;
};

/// Visibilities of an image at any u, v, and the exact adjoint of that, by nonuniform FFTs on the CPU:
///
///   V_k = cell_size^2 sum_{m,l} I(m,l) exp(-2 pi i (u_k l + v_k m))
///
/// The points are sorted once per dtype, at the first use. Results are bitwise the same for any number of threads. No
/// parameters, no state.
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

  const GridCoords& coords() const { return plans_->coords(); }
  const Baselines& baselines() const { return plans_->baselines(); }
  std::int64_t nchan() const { return plans_->nchan(); }
  const NufftOptions& options() const { return plans_->options(); }
  std::int64_t memory_bytes() const { return plans_->memory_bytes(); }
  NufftPlans& plans() const { return *plans_; }

 private:
  c10::intrusive_ptr<NufftPlans> plans_;
};

TORCH_MODULE(Nufft);

/// @throws DataError unless max_abs_u, max_abs_v (wavelengths) <= 1/(2 dl), the largest that the image represents
void check_nufft_fit(const GridCoords& coords, double max_abs_u, double max_abs_v);

}  // namespace mpol
