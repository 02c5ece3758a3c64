#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/ops/nufft/nufft_plan.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol::gridding {

using torch::Tensor;

/// Samples [begin, end) of a data channel, at u, v in wavelengths, float64.
struct SampleRange {
  std::int64_t channel, begin, end;
  const Tensor &u, &v;
};

/// Writes what each sample of a range adds to an image: (end - begin) complex128 on the CPU, contiguous.
using SampleValues = std::function<void(const SampleRange& range, const Tensor& values)>;

/// Images of samples at their own u, v, by a nonuniform transform of type 1 of tolerance 1e-12:
///
///   image(l, m) = scale Re sum_k V_k exp(2 pi i (u_k l + v_k m))
///
/// Samples are transformed in blocks that add to one fine grid. Where that does not fit the working storage, the image is made
/// in square parts, each with a pass over the samples, whose phases are turned to the part's middle. The result is the same bit
/// for bit for any number of threads.
class SampleImage {
 public:
  /// @param working_bytes  what may be used above the image; blocks of samples and parts of the image are as large as that
  ///                       allows, but at least some thousand samples and 64 x 64 pixels
  SampleImage(const GridCoords& coords, Baselines baselines, std::int64_t working_bytes);

  /// @param channels  data channels that are added up
  /// @param values    asked for one block of a channel after the other, for each part of the image
  /// @param image     (npix, npix) float64 on the CPU, contiguous, sky orientation; overwritten
  void make(const std::vector<std::int64_t>& channels, const SampleValues& values, double scale, const Tensor& image) const;

  /// Parts along each axis of the image.
  std::int64_t parts() const { return parts_; }

 private:
  using Plan = ops::NufftPlan<double>;

  struct Block;

  std::unique_ptr<Plan> plan_of(const Tensor& u, const Tensor& v) const;
  void make_part(const std::vector<std::int64_t>& channels, const SampleValues& values, double scale, std::int64_t row,
                 std::int64_t column, const Tensor& image, const Block& block) const;

  GridCoords coords_;
  Baselines baselines_;
  std::int64_t parts_, part_npix_, block_;
  std::unique_ptr<Plan> finish_;  // without points
};

}  // namespace mpol::gridding
