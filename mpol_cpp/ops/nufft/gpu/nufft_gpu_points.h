#pragma once

// The kernels of the nonuniform transform over points; C++17.
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_arrays.h>

namespace mpol::ops {

enum class NufftWork { degrid, grid, fused };

/// How a block cuts a task: batches of points, whose values groups of threads then spread, each group into a tile of its
/// own. A thread of a group owns every width-th cell along u and v, of which each footprint has just one.
template <typename T, int window_width>
struct NufftCut {
  static constexpr int width = window_width, threads = 256;
  static constexpr int batch = sizeof(T) == 4 ? 256 : 64;  // points
  static constexpr int side = NufftTile::cells + width - 1, cells = side * side, footprint = width * width;
  static constexpr int tile_bytes = cells * 2 * static_cast<int>(sizeof(T));
  static constexpr int room = 24576 / tile_bytes;  // tiles in shared memory
  static constexpr int groups = room < 1 ? 1 : (room * footprint < threads ? room : threads / footprint);
  static constexpr int degree = nufft_power_degree<T>(width);

  /// Groups that spread the values of each of so many images; a group alone spreads those of all.
  static constexpr int groups_of_image(int images) { return groups < images ? 1 : groups / images; }
  static constexpr int shared_bytes(NufftWork work, int images) {
    const int tiles = (work == NufftWork::grid ? 0 : 1) + (work == NufftWork::degrid ? 0 : groups_of_image(images));
    const int of_points = work == NufftWork::degrid ? 0 : batch * (2 * (width + images) * static_cast<int>(sizeof(T)) + 4);
    return images * tiles * tile_bytes + of_points;
  }
  /// Most images whose points are visited together, so that the window is evaluated once for all: they fit the shared memory
  /// of a block, and at most a quarter of the groups' time is idle.
  static constexpr int most_images(NufftWork work) {
    for (int images = nufft_max_images; images > 1; --images) {
      const int tiles = images * groups_of_image(images), turns = (tiles + groups - 1) / groups;
      const bool busy = work == NufftWork::degrid || 4 * tiles >= 3 * turns * groups;
      if (busy && shared_bytes(work, images) <= 49152 - 256) return images;
    }
    return 1;
  }
};

/// The tiles that a task's points see in up to `images` images, and what they do with them:
///   degrid  visibilities = the tile at the points
///   grid    tile = the visibilities at the points
///   fused   tile = w (model - d) at the points, with the model from the tile, and chi^2
/// Blocks on the other images of a task follow each other, so that its points are still in the cache.
template <typename T, int width, NufftWork work, int images>
struct NufftTaskBody {
  using Cut = NufftCut<T, width>;
  using Value = ComplexValue<T>;
  static constexpr int threads = Cut::threads, phases = 6;
  static constexpr int round_begin = 1, round_end = 3;
  static constexpr bool reads_tile = work != NufftWork::grid, writes_tile = work != NufftWork::degrid;
  static constexpr int lanes = Cut::groups_of_image(images);  // groups that spread the values of an image

  struct Windows {
    SharedArray<T, writes_tile ? Cut::batch * width : 1> along_u, along_v;
  };
  /// The windows are no longer wanted when chi^2 is summed.
  union Scratch {
    Windows windows;
    BlockSums<images, work == NufftWork::fused ? threads : 1> chi_squared;
  };
  struct Shared {
    SharedArray<Value, reads_tile ? images * Cut::cells : 1> tile;
    SharedArray<Value, writes_tile ? images * lanes * Cut::cells : 1> sums;
    Scratch scratch;
    SharedArray<Value, writes_tile ? images * Cut::batch : 1> value;
    SharedArray<std::uint32_t, writes_tile ? Cut::batch : 1> first;  // cell of the footprint, and both modulo width
  };
  struct Local {
    double chi_squared[images];
  };

  static_assert(sizeof(Shared) <= 49152, "a block has 48 KiB of shared memory");

  NufftGpuArrays<T> arrays;

  std::int64_t blocks() const { return arrays.shape.tasks * stacks(); }
  MPOL_DEVICE std::int64_t rounds(std::int64_t block) const {
    const auto task = task_of(block);
    return (task.end - task.begin + Cut::batch - 1) / Cut::batch;
  }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    if constexpr (phase == 0) {
      for (int n = 0; n < images; ++n) local.chi_squared[n] = 0;
      if constexpr (reads_tile) load_tiles(place, shared);
      if constexpr (writes_tile) {
        for (int k = place.thread; k < images * lanes * Cut::cells; k += threads) shared.sums[k] = {T(0), T(0)};
      }
    } else if constexpr (phase == 1) {
      for (int p = place.thread; p < batch_size(place); p += threads) visit_point(place, p, shared, local);
    } else if constexpr (phase == 2) {
      if constexpr (writes_tile) spread(place, shared);
    } else if constexpr (phase == 3) {
      if constexpr (writes_tile) write_tiles(place, shared);
      if constexpr (work == NufftWork::fused) shared.scratch.chi_squared.put(place.thread, local.chi_squared);
    } else if constexpr (phase == 4) {
      if constexpr (work == NufftWork::fused) shared.scratch.chi_squared.gather(place.thread);
    } else if constexpr (work == NufftWork::fused) {
      if (place.thread < image_count(place.block)) {
        arrays.task_values[tile_index(place.block, place.thread)] = shared.scratch.chi_squared.total(place.thread);
      }
    }
  }

 private:
  MPOL_DEVICE std::uint32_t stacks() const { return static_cast<std::uint32_t>((arrays.shape.images + images - 1) / images); }
  MPOL_DEVICE int first_image(std::int64_t block) const {
    return static_cast<int>(static_cast<std::uint32_t>(block) % stacks()) * images;
  }
  MPOL_DEVICE int image_count(std::int64_t block) const {
    const int left = arrays.shape.images - first_image(block);
    return left < images ? left : images;
  }
  MPOL_DEVICE std::int64_t task_index(std::int64_t block) const { return static_cast<std::uint32_t>(block) / stacks(); }
  MPOL_DEVICE NufftGpuTask task_of(std::int64_t block) const { return arrays.task[task_index(block)]; }
  /// The index of a tile of a block's n-th image.
  MPOL_DEVICE std::int64_t tile_index(std::int64_t block, int n) const {
    return (first_image(block) + n) * arrays.shape.tasks + task_index(block);
  }
  MPOL_DEVICE int batch_size(const Place& place) const {
    const auto task = task_of(place.block);
    const std::int64_t left = task.end - task.begin - place.round * Cut::batch;
    return left < Cut::batch ? static_cast<int>(left) : Cut::batch;
  }

  /// The fine grid around the task's points, from the half planes.
  MPOL_DEVICE void load_tiles(const Place& place, Shared& shared) const {
    const auto& shape = arrays.shape;
    const auto task = task_of(place.block);
    const int period = shape.period(), count = image_count(place.block);
    const int first_u = shape.first_u + NufftTile::cells * task.tile_u, first_v = shape.first_v + NufftTile::cells * task.tile_v;
    for (int k = place.thread; k < Cut::cells; k += threads) {
      int u = nufft_wrapped(first_u + k % Cut::side, period), v = nufft_wrapped(first_v + k / Cut::side, period);
      const bool mirrored = u >= shape.half();
      if (mirrored) {
        u = period - u;
        v = v == 0 ? 0 : period - v;
      }
      std::int64_t at = first_image(place.block) * shape.half_plane() + std::int64_t{v} * shape.half() + u;
      for (int n = 0; n < count; ++n, at += shape.half_plane()) {
        const Value value = arrays.half[at];
        shared.tile[n * Cut::cells + k] = {value.real, mirrored ? -value.imag : value.imag};
      }
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
    const int count = image_count(place.block);
    T along_u[width], along_v[width];
    window(arrays.x[point], along_u);
    window(arrays.y[point], along_v);
    MPOL_UNROLL
    for (int n = 0; n < images; ++n) {
      if (n >= count) break;
      const std::int64_t image = first_image(place.block) + n;
      Value value{T(0), T(0)};
      if constexpr (reads_tile) {
        value = interpolated(shared, n * Cut::cells + first_v * Cut::side + first_u, along_u, along_v);
      }
      if constexpr (work == NufftWork::degrid) store(image, point, value);
      if constexpr (work == NufftWork::grid) value = given(image, point);
      if constexpr (work == NufftWork::fused) value = residual(image, point, value, local.chi_squared[n]);
      if constexpr (writes_tile) shared.value[n * Cut::batch + p] = value;
    }
    if constexpr (writes_tile) {
      MPOL_UNROLL
      for (int r = 0; r < width; ++r) {
        shared.scratch.windows.along_u[p * width + r] = along_u[r];
        shared.scratch.windows.along_v[p * width + r] = along_v[r];
      }
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

  MPOL_DEVICE void store(std::int64_t image, std::int64_t point, const Value& value) const {
    arrays.visibilities[image * arrays.shape.points + arrays.source(point)] = {value.real,
                                                                               arrays.mirrored(point) ? -value.imag : value.imag};
  }

  MPOL_DEVICE Value given(std::int64_t image, std::int64_t point) const {
    const Value value = arrays.visibilities[image * arrays.shape.points + arrays.source(point)];
    return {value.real, arrays.mirrored(point) ? -value.imag : value.imag};
  }

  MPOL_DEVICE Value residual(std::int64_t image, std::int64_t point, const Value& model, double& chi_squared) const {
    const std::int64_t channel =
        static_cast<std::uint32_t>(arrays.shape.first_channel + image) % static_cast<std::uint32_t>(arrays.shape.channels);
    const std::int64_t at = channel * arrays.shape.points + point;
    const T weight = arrays.weight[at], real = model.real - arrays.real[at], imag = model.imag - arrays.imag[at];
    chi_squared += static_cast<double>(weight * (real * real + imag * imag));
    return {weight * real, weight * imag};
  }

  /// A group spreads the values of one image, every `lanes`-th point of the batch; where there are too few groups each goes on
  /// to the next image.
  MPOL_DEVICE void spread(const Place& place, Shared& shared) const {
    const int group = place.thread / Cut::footprint, own = place.thread % Cut::footprint;
    if (group >= Cut::groups) return;
    const int own_u = own % width, own_v = own / width, count = batch_size(place), tiles = image_count(place.block) * lanes;
    for (int tile = group; tile < tiles; tile += Cut::groups) {
      const int n = tile / lanes;
      for (int p = tile % lanes; p < count; p += lanes) {
        const std::uint32_t first = shared.first[p];
        int r = own_u - static_cast<int>(first >> 16 & 255), s = own_v - static_cast<int>(first >> 24);
        r += r < 0 ? width : 0;
        s += s < 0 ? width : 0;
        const int at = (static_cast<int>(first >> 8 & 255) + s) * Cut::side + static_cast<int>(first & 255) + r;
        auto& windows = shared.scratch.windows;
        const T factor = windows.along_u[p * width + r] * windows.along_v[p * width + s];
        const Value value = shared.value[n * Cut::batch + p];
        Value& sum = shared.sums[tile * Cut::cells + at];
        sum.real += factor * value.real;
        sum.imag += factor * value.imag;
      }
    }
  }

  MPOL_DEVICE void write_tiles(const Place& place, Shared& shared) const {
    for (int n = 0; n < image_count(place.block); ++n) {
      const std::int64_t begin = tile_index(place.block, n) * Cut::cells;
      for (int k = place.thread; k < Cut::cells; k += threads) {
        Value sum{T(0), T(0)};
        for (int lane = 0; lane < lanes; ++lane) {
          sum.real += shared.sums[(n * lanes + lane) * Cut::cells + k].real;
          sum.imag += shared.sums[(n * lanes + lane) * Cut::cells + k].imag;
        }
        arrays.tile[begin + k] = sum;
      }
    }
  }
};

}  // namespace mpol::ops
