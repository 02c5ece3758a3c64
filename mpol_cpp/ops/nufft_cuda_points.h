#pragma once

// The kernels of the nonuniform transform over points; C++17.
#include <mpol_cpp/ops/nufft_cuda_arrays.h>

namespace mpol::ops {

/// How a block cuts a task: batches of points, whose values groups of threads then spread, each group into a tile of its
/// own. A thread of a group owns every width-th cell along u and v, of which each footprint has just one.
template <typename T, int window_width>
struct NufftCut {
  static constexpr int width = window_width, threads = 256;
  static constexpr int batch = sizeof(T) == 4 ? 256 : 64;  // points
  static constexpr int side = NufftTile::cells + width - 1, cells = side * side, footprint = width * width;
  static constexpr int room = 24576 / (cells * 2 * static_cast<int>(sizeof(T)));  // tiles in shared memory
  static constexpr int groups = room < 1 ? 1 : (room * footprint < threads ? room : threads / footprint);
  static constexpr int degree = nufft_power_degree<T>(width);
};

enum class NufftWork { degrid, grid, fused };

/// The tile that a task's points see, and what they do with it:
///   degrid  visibilities = the tile at the points
///   grid    tile = the visibilities at the points
///   fused   tile = w (model - d) at the points, with the model from the tile, and chi^2
/// The images of a task follow each other, so that its points are still in the cache.
template <typename T, int width, NufftWork work>
struct NufftTaskBody {
  using Cut = NufftCut<T, width>;
  using Value = ComplexValue<T>;
  static constexpr int threads = Cut::threads, phases = 6;
  static constexpr int round_begin = 1, round_end = 3;
  static constexpr bool reads_tile = work != NufftWork::grid, writes_tile = work != NufftWork::degrid;

  struct Shared {
    SharedArray<Value, reads_tile ? Cut::cells : 1> tile;
    SharedArray<Value, writes_tile ? Cut::groups * Cut::cells : 1> sums;
    SharedArray<T, writes_tile ? Cut::batch * width : 1> along_u, along_v;
    SharedArray<Value, writes_tile ? Cut::batch : 1> value;
    SharedArray<std::uint32_t, writes_tile ? Cut::batch : 1> first;  // cell of the footprint, and both modulo width
    BlockSums<1, work == NufftWork::fused ? threads : 1> chi_squared;
  };
  struct Local {
    double chi_squared;
  };

  static_assert(sizeof(Shared) <= 49152, "a block has 48 KiB of shared memory");

  NufftDeviceArrays<T> arrays;

  std::int64_t blocks() const { return arrays.shape.tasks * arrays.shape.images; }
  MPOL_DEVICE std::int64_t rounds(std::int64_t block) const {
    const auto task = task_of(block);
    return (task.end - task.begin + Cut::batch - 1) / Cut::batch;
  }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    if constexpr (phase == 0) {
      local.chi_squared = 0;
      if constexpr (reads_tile) load_tile(place, shared);
      if constexpr (writes_tile) {
        for (int k = place.thread; k < Cut::groups * Cut::cells; k += threads) shared.sums[k] = {T(0), T(0)};
      }
    } else if constexpr (phase == 1) {
      for (int p = place.thread; p < batch_size(place); p += threads) visit_point(place, p, shared, local);
    } else if constexpr (phase == 2) {
      if constexpr (writes_tile) spread(place, shared);
    } else if constexpr (phase == 3) {
      if constexpr (writes_tile) write_tile(place, shared);
      if constexpr (work == NufftWork::fused) shared.chi_squared.put(place.thread, {local.chi_squared});
    } else if constexpr (phase == 4) {
      if constexpr (work == NufftWork::fused) shared.chi_squared.gather(place.thread);
    } else if constexpr (work == NufftWork::fused) {
      if (place.thread == 0) arrays.of_tasks[tile_index(place.block)] = shared.chi_squared.total(0);
    }
  }

 private:
  MPOL_DEVICE std::int64_t image_of(std::int64_t block) const {
    return static_cast<std::uint32_t>(block) % static_cast<std::uint32_t>(arrays.shape.images);
  }
  MPOL_DEVICE std::int64_t task_index(std::int64_t block) const {
    return static_cast<std::uint32_t>(block) / static_cast<std::uint32_t>(arrays.shape.images);
  }
  MPOL_DEVICE NufftDeviceTask task_of(std::int64_t block) const { return arrays.task[task_index(block)]; }
  MPOL_DEVICE std::int64_t tile_index(std::int64_t block) const {
    return image_of(block) * arrays.shape.tasks + task_index(block);
  }
  MPOL_DEVICE int batch_size(const Place& place) const {
    const auto task = task_of(place.block);
    const std::int64_t left = task.end - task.begin - place.round * Cut::batch;
    return left < Cut::batch ? static_cast<int>(left) : Cut::batch;
  }

  /// The fine grid around the tile's points, from the half plane.
  MPOL_DEVICE void load_tile(const Place& place, Shared& shared) const {
    const auto& shape = arrays.shape;
    const auto task = task_of(place.block);
    const std::int64_t begin = image_of(place.block) * shape.half_plane();
    const int period = shape.period();
    const int first_u = shape.first_u + NufftTile::cells * task.tile_u, first_v = shape.first_v + NufftTile::cells * task.tile_v;
    for (int k = place.thread; k < Cut::cells; k += threads) {
      int u = nufft_wrapped(first_u + k % Cut::side, period), v = nufft_wrapped(first_v + k / Cut::side, period);
      const bool mirrored = u >= shape.half();
      if (mirrored) {
        u = period - u;
        v = v == 0 ? 0 : period - v;
      }
      const Value value = arrays.half[begin + std::int64_t{v} * shape.half() + u];
      shared.tile[k] = {value.real, mirrored ? -value.imag : value.imag};
    }
  }

  /// The window at the cells of the footprint, polynomials of the offset.
  MPOL_DEVICE void window(T offset, T (&values)[width]) const {
    MPOL_UNROLL
    for (int r = 0; r < width; ++r) values[r] = arrays.power[Cut::degree * width + r];
    MPOL_UNROLL
    for (int k = Cut::degree - 1; k >= 0; --k) {
      MPOL_UNROLL
      for (int r = 0; r < width; ++r) values[r] = values[r] * offset + arrays.power[k * width + r];
    }
  }

  MPOL_DEVICE void visit_point(const Place& place, int p, Shared& shared, Local& local) const {
    const std::int64_t point = task_of(place.block).begin + place.round * Cut::batch + p;
    const int cell = arrays.cell[point], first_u = cell % NufftTile::cells, first_v = cell / NufftTile::cells;
    T along_u[width], along_v[width];
    window(arrays.x[point], along_u);
    window(arrays.y[point], along_v);
    Value value{T(0), T(0)};
    if constexpr (reads_tile) value = interpolated(shared, first_v * Cut::side + first_u, along_u, along_v);
    if constexpr (work == NufftWork::degrid) store(place.block, point, value);
    if constexpr (work == NufftWork::grid) value = given(place.block, point);
    if constexpr (work == NufftWork::fused) value = residual(place.block, point, value, local);
    if constexpr (writes_tile) {
      MPOL_UNROLL
      for (int r = 0; r < width; ++r) {
        shared.along_u[p * width + r] = along_u[r];
        shared.along_v[p * width + r] = along_v[r];
      }
      shared.value[p] = value;
      shared.first[p] = static_cast<std::uint32_t>(first_u | first_v << 8 | first_u % width << 16 | first_v % width << 24);
    }
  }

  MPOL_DEVICE Value interpolated(Shared& shared, int first, const T (&along_u)[width], const T (&along_v)[width]) const {
    Value sum{T(0), T(0)};
    MPOL_UNROLL
    for (int s = 0; s < width; ++s) {
      Value row{T(0), T(0)};
      MPOL_UNROLL
      for (int r = 0; r < width; ++r) {
        const Value cell = shared.tile[first + s * Cut::side + r];
        row.real += along_u[r] * cell.real;
        row.imag += along_u[r] * cell.imag;
      }
      sum.real += along_v[s] * row.real;
      sum.imag += along_v[s] * row.imag;
    }
    return sum;
  }

  MPOL_DEVICE void store(std::int64_t block, std::int64_t point, const Value& value) const {
    arrays.visibilities[image_of(block) * arrays.shape.points + arrays.source(point)] = {
        value.real, arrays.mirrored(point) ? -value.imag : value.imag};
  }

  MPOL_DEVICE Value given(std::int64_t block, std::int64_t point) const {
    const Value value = arrays.visibilities[image_of(block) * arrays.shape.points + arrays.source(point)];
    return {value.real, arrays.mirrored(point) ? -value.imag : value.imag};
  }

  MPOL_DEVICE Value residual(std::int64_t block, std::int64_t point, const Value& model, Local& local) const {
    const std::int64_t channel = static_cast<std::uint32_t>(arrays.shape.first_channel + image_of(block)) %
                                 static_cast<std::uint32_t>(arrays.shape.channels);
    const std::int64_t at = channel * arrays.shape.points + point;
    const T weight = arrays.weight[at], real = model.real - arrays.real[at], imag = model.imag - arrays.imag[at];
    local.chi_squared += static_cast<double>(weight * (real * real + imag * imag));
    return {weight * real, weight * imag};
  }

  /// Each group takes every so-manieth point of the batch.
  MPOL_DEVICE void spread(const Place& place, Shared& shared) const {
    const int group = place.thread / Cut::footprint, own = place.thread % Cut::footprint;
    if (group >= Cut::groups) return;
    const int own_u = own % width, own_v = own / width, count = batch_size(place);
    for (int p = group; p < count; p += Cut::groups) {
      const std::uint32_t first = shared.first[p];
      int r = own_u - static_cast<int>(first >> 16 & 255), s = own_v - static_cast<int>(first >> 24);
      r += r < 0 ? width : 0;
      s += s < 0 ? width : 0;
      const int at = (static_cast<int>(first >> 8 & 255) + s) * Cut::side + static_cast<int>(first & 255) + r;
      const T factor = shared.along_u[p * width + r] * shared.along_v[p * width + s];
      Value& sum = shared.sums[group * Cut::cells + at];
      sum.real += factor * shared.value[p].real;
      sum.imag += factor * shared.value[p].imag;
    }
  }

  MPOL_DEVICE void write_tile(const Place& place, Shared& shared) const {
    const std::int64_t begin = tile_index(place.block) * Cut::cells;
    for (int k = place.thread; k < Cut::cells; k += threads) {
      Value sum{T(0), T(0)};
      for (int group = 0; group < Cut::groups; ++group) {
        sum.real += shared.sums[group * Cut::cells + k].real;
        sum.imag += shared.sums[group * Cut::cells + k].imag;
      }
      arrays.tile[begin + k] = sum;
    }
  }
};

}  // namespace mpol::ops
