#pragma once

// What the kernels of the nonuniform transform on a GPU are given. C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/gpu/block.h>
#include <mpol_cpp/ops/gpu/complex_value.h>
#include <mpol_cpp/ops/nufft/nufft_kernels.h>

namespace mpol::ops {

/// Points of one tile that one block works off.
struct NufftGpuTask {
  std::int64_t begin, end;
  std::int32_t tile_u, tile_v;
};

/// Numbers of cells and blocks fit 32 bits, in which a GPU divides quickly; numbers of elements need not.
struct NufftGpuShape {
  int npix, images;
  int channels, first_channel;  // of the data: image i is compared with channel (first_channel + i) % channels
  int first_u, first_v;         // of the first tile, cells of the fine grid
  int tiles_u, tiles_v;
  int width;
  std::int64_t points, tasks;

  MPOL_DEVICE int period() const { return 2 * npix; }
  MPOL_DEVICE int half() const { return npix + 1; }
  MPOL_DEVICE std::int64_t half_plane() const { return std::int64_t{2} * npix * (npix + 1); }
  /// Cells of a tile along an axis, with those that footprints reach.
  MPOL_DEVICE int side() const { return NufftTile::cells + width - 1; }
};

MPOL_DEVICE int nufft_wrapped(int n, int period) {
  const int rest = n % period;
  return rest < 0 ? rest + period : rest;
}

/// All arrays are contiguous; u is the fastest axis of planes, half planes and tiles.
template <typename T>
struct NufftGpuArrays {
  NufftGpuShape shape;
  T scale;  // of visibilities or images that come out

  DeviceArray<T> image;               // (images, npix, npix), sky orientation
  DeviceArray<T> plane;               // (images, 2 npix, 2 npix), origin first
  DeviceArray<ComplexValue<T>> half;  // (images, 2 npix, npix + 1), its transform
  DeviceArray<const T> correction;    // (npix): 1/transform of the window at n = -npix/2, ...

  DeviceArray<const T> x, y;                   // (points): offsets in the footprint, in the order of the plan
  DeviceArray<const std::uint8_t> cell;        // (points): first cell of the footprint in the tile, u + 16 v
  DeviceArray<const std::int32_t> order;       // (points): where they were given; below 0 where mirrored, see source()
  DeviceArray<const NufftGpuTask> task;        // (tasks), those of a tile together
  DeviceArray<const std::int64_t> tile_begin;  // (tiles_u tiles_v + 1): the first task of each tile, v fastest
  DeviceArray<ComplexValue<T>> tile;           // (images, tasks, side, side): what each task gridded

  DeviceArray<ComplexValue<T>> visibilities;  // (images, points), in the order given
  DeviceArray<const T> real, imag, weight;    // (channels, points), in the order of the plan
  DeviceArray<double> task_values;            // (images, tasks): chi^2
  DeviceArray<double> values;                 // (images): chi^2

  T power[NufftTables<T>::powers * nufft_max_width];  // factors of x^k for cell r of the footprint, at [k width + r]

  MPOL_DEVICE std::int64_t source(std::int64_t point) const { return order[point] & 0x7fffffff; }
  MPOL_DEVICE bool mirrored(std::int64_t point) const { return order[point] < 0; }
};

enum class NufftGpuKernel { pad, crop, degrid, grid, fused, gather, sum };

}  // namespace mpol::ops
