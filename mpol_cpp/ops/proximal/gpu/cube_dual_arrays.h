#pragma once

// What the kernels of the dual steps of cubes on a GPU are given. C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/proximal/gpu/piece_sums.h>
#include <mpol_cpp/ops/proximal/pixel_cut.h>

namespace mpol::ops {

/// Parts of the dual images (solvers/cube_proximal.h): u_1 to u_4.
enum CubePart : int { variation_part, channels_part, spectra_part, curvature_part, cube_parts };

/// Images are (problems, nchan, npix, npix), dual images (planes, problems, nchan, npix, npix), all contiguous.
template <typename T>
struct CubeDualArrays {
  ImagePieces cut;
  std::int32_t npix;
  bool hann;
  std::int64_t pass;               // of this launch, from 0; of the last kernels all are done
  std::int32_t plane[cube_parts];  // the first of each part; -1: there is none

  DeviceArray<const T> q, mask;               // mask empty: all may shine
  DeviceArray<const std::int64_t> passes;     // (problems)
  DeviceArray<const double> weights, climbs;  // (cube_parts, problems): k_j, and k_j sigma_j where steps are 1
  DeviceArray<const double> magnitudes;       // (problems): weights of pixels of either sign; empty: none is negative
  DeviceArray<const double> steps;            // (cube_parts, problems, nchan): s of the images that a part joins
  DeviceArray<const T> even, odd;             // the dual images after an even number of passes, and after an odd one
  DeviceArray<T> next;                        // where those of this pass go: over those before the last
  DeviceArray<T> slope;                       // like the images: what duals add up to; empty where who looks gathers by itself
  DeviceArray<T> seen;                        // like the images: S x
  DeviceArray<T> cuts;                        // (problems, npix, npix): what spectra are multiplied with
  DeviceArray<double> block_turns;            // (problems, nchan pieces)
  DeviceArray<double> t;                      // (passes, problems)
  DeviceArray<double> momentum;               // (problems)
  DeviceArray<T> x, dual;

  MPOL_DEVICE bool has(CubePart part) const { return plane[part] >= 0; }
  MPOL_DEVICE bool is_on(std::int64_t problem) const { return passes[problem] > pass; }
  MPOL_DEVICE std::int64_t plane_size() const { return cut.images() * cut.pixels; }
  MPOL_DEVICE std::int64_t problem_of(std::int64_t image) const { return image / cut.nchan; }
  MPOL_DEVICE T weight(CubePart part, std::int64_t problem) const {
    return static_cast<T>(weights[part * std::int64_t{cut.problems} + problem]);
  }
  MPOL_DEVICE PixelCut<T> cut_of(std::int64_t image) const {
    if (magnitudes.size == 0) return {false, T(0)};
    return {true, static_cast<T>(step(variation_part, image) * magnitudes[problem_of(image)])};
  }
  MPOL_DEVICE double step(CubePart part, std::int64_t image) const { return steps[part * cut.images() + image]; }
};

/// Pixels of a block that smooths an image.
template <int tile_width, int tile_height, int tile_threads>
struct CubeDualTile {
  static constexpr int width = tile_width, height = tile_height, threads = tile_threads;
};
using UsualCubeTile = CubeDualTile<32, 16, 256>;
using OddCubeTile = CubeDualTile<5, 3, 7>;  // divides nothing: for tests of the emulation

/// turn: momentum; gather: slope; look: S x; norms: of spectra; raise: the next duals; last_gather and finish: x and the dual
/// images. Small images go without turn and the gathers: there a kernel's start takes longer than what a block of the others does
/// in their stead.
enum class CubeDualKernel { turn, gather, look, norms, raise, last_gather, finish };
enum class CubeDualCut { small, large, odd };

}  // namespace mpol::ops
