#pragma once

// What the kernels of proximal gradient iterations on a GPU are given. C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/proximal/gpu/piece_sums.h>
#include <mpol_cpp/ops/proximal/pogm_end.h>

namespace mpol::ops {

/// What is summed up over each image to compare two points: products of the step with the gradients (PointSums), and the pixels.
enum PogmSum : int { along_sum, bends_sum, lengths_sum, pixels_sum, next_pixels_sum, pogm_sums };

/// Images are (problems, nchan, npix, npix), contiguous; names as in solvers/pogm.h.
template <typename T>
struct PogmArrays {
  ImagePieces cut;
  std::int64_t columns;  // of the losses
  bool fista, mixes_images;
  double margin_of_curvature, rounding_of_curvature;
  std::int64_t most_passes;

  DeviceArray<T> y, w, z, gradient;
  DeviceArray<const T> next, next_gradient;
  DeviceArray<double> t, c, regularizers;                    // (problems)
  DeviceArray<double> curvatures;                            // (problems, nchan)
  DeviceArray<std::int64_t> passes;                          // (problems): wanted
  DeviceArray<const std::int64_t> in_force;                  // (problems): had
  DeviceArray<std::int64_t> ends;                            // (problems): of the last iteration, PogmEnd
  DeviceArray<double> next_t, next_c, steps;                 // (problems), (problems), (problems, nchan): of the proximal map
  DeviceArray<double> piece_sums, sums;                      // (pogm_sums, images, pieces), (pogm_sums, images)
  DeviceArray<const double> next_regularizers, next_losses;  // (problems), (columns, problems): at next
  DeviceArray<double> losses;                                // (columns, problems)
  DeviceArray<double> report;      // the losses before the iteration, the sum of all pixels after it, decreases of F (problems)
  DeviceArray<double> pixel_sums;  // (problems): after the iteration

  MPOL_DEVICE bool ended(std::int64_t problem, PogmEnd how) const { return ends[problem] == static_cast<std::int64_t>(how); }
  MPOL_DEVICE void set_end(std::int64_t problem, PogmEnd how) const { ends[problem] = static_cast<std::int64_t>(how); }
};

enum class PogmKernel { advance, compare, sum_up, judge, choose };

}  // namespace mpol::ops
