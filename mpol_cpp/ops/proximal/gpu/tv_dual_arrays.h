#pragma once

// What the kernels of the dual steps of total variation on a GPU are given. C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/gpu/block.h>
#include <mpol_cpp/ops/proximal/pixel_cut.h>

namespace mpol::ops {

/// How kernels cut an image: the pixels of a block, and how many of a column a thread smooths.
template <int tile_width, int tile_height, int tile_threads, int tile_run>
struct TvDualTile {
  static constexpr int width = tile_width, height = tile_height, threads = tile_threads, run = tile_run;
};
using LowTvTile = TvDualTile<32, 8, 256, 2>;    // for images so small that high ones leave processors idle
using HighTvTile = TvDualTile<32, 32, 256, 5>;  // looks at fewer pixels twice
using OddTvTile = TvDualTile<5, 3, 7, 2>;       // divides nothing: for tests of the emulation

/// What turning is told by: the sum of each block, or of each group of blocks where there are too many for every block to add up.
inline constexpr std::int64_t most_turns = 1024, turn_groups = 256;

/// Images are (problems, nchan, npix, npix), dual images (2, problems, nchan, npix, npix): rows, columns; all contiguous.
template <typename T>
struct TvDualArrays {
  std::int32_t npix, nchan, problems;
  bool hann;
  std::int64_t pass;  // of this launch, from 0

  DeviceArray<const T> q, mask;               // mask empty: all may shine
  DeviceArray<const double> weights;          // (problems, nchan): k
  DeviceArray<const double> thresholds;       // the same of pixels of either sign; empty: none is negative
  DeviceArray<const std::int64_t> passes;     // (problems)
  DeviceArray<const T> now, before;           // p and the one before
  DeviceArray<T> next;                        // p'
  DeviceArray<const double> turns;            // (problems, turn_count): of the pass before
  DeviceArray<double> block_turns;            // (problems, nchan tiles): of this pass
  DeviceArray<double> group_turns;            // (problems, turn_groups): of this pass
  DeviceArray<double> t;                      // (passes, problems)
  DeviceArray<const T> first, second, third;  // p' of the passes 0, 1, 2 and every third one after each
  DeviceArray<T> x, dual;

  MPOL_DEVICE std::uint32_t pixels() const { return static_cast<std::uint32_t>(npix) * static_cast<std::uint32_t>(npix); }
  MPOL_DEVICE std::int64_t images() const { return std::int64_t{problems} * nchan; }
  template <typename Tile>
  MPOL_DEVICE std::uint32_t tiles_along() const {
    return (static_cast<std::uint32_t>(npix) + Tile::width - 1) / Tile::width;
  }
  template <typename Tile>
  MPOL_DEVICE std::uint32_t tiles() const {
    return tiles_along<Tile>() * ((static_cast<std::uint32_t>(npix) + Tile::height - 1) / Tile::height);
  }
  MPOL_DEVICE std::int64_t turn_count() const { return turns.size / problems; }
  MPOL_DEVICE PixelCut<T> cut(std::int64_t image) const {
    return {thresholds.size > 0, thresholds.size > 0 ? static_cast<T>(thresholds[image]) : T(0)};
  }
  MPOL_DEVICE bool is_on(std::int64_t problem) const { return passes[problem] > pass; }
};

enum class TvDualKernel { raise, gather, finish };
enum class TvDualCut { low, high, odd };

}  // namespace mpol::ops
