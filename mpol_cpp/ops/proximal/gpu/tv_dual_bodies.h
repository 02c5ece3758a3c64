#pragma once

// The kernels of the dual steps of total variation (solvers/tv_proximal.h has the equations); C++17.
#include <cmath>

#include <mpol_cpp/ops/gpu/gpu_math.h>
#include <mpol_cpp/ops/proximal/gpu/tv_dual_arrays.h>

namespace mpol::ops {

/// The pixels that a block works on, and what it looks at around them, in shared memory. Arrays begin `reach` rows and columns
/// before the tile.
template <typename T, typename Tile>
struct TvDualPatch {
  std::int32_t image, row, column;  // of the first pixel of the tile

  MPOL_DEVICE static TvDualPatch of(const TvDualArrays<T>& arrays, std::int64_t block) {
    const std::uint32_t tiles = arrays.template tiles<Tile>(), along = arrays.template tiles_along<Tile>();
    const std::uint32_t image = static_cast<std::uint32_t>(block) / tiles,
                        tile = static_cast<std::uint32_t>(block) - image * tiles, row = tile / along;
    return {static_cast<std::int32_t>(image), static_cast<std::int32_t>(row * Tile::height),
            static_cast<std::int32_t>((tile - row * along) * Tile::width)};
  }

  /// Calls run(index, row, column, is_inside) for the pixels of an array of width x height, shared by the threads of a block.
  template <int reach, int width, int height, typename Run>
  MPOL_DEVICE void each(const TvDualArrays<T>& arrays, int thread, const Run& run) const {
    for (int k = thread; k < width * height; k += Tile::threads) {
      const std::int32_t r = row + k / width - reach, c = column + k % width - reach;
      run(k, r, c, has(arrays, r, c));
    }
  }

  MPOL_DEVICE bool has(const TvDualArrays<T>& arrays, std::int32_t r, std::int32_t c) const {
    return static_cast<std::uint32_t>(r) < static_cast<std::uint32_t>(arrays.npix) &&
           static_cast<std::uint32_t>(c) < static_cast<std::uint32_t>(arrays.npix);
  }

  MPOL_DEVICE std::int64_t place(const TvDualArrays<T>& arrays, std::int32_t r, std::int32_t c) const {
    return image * std::int64_t{arrays.pixels()} +
           (static_cast<std::uint32_t>(r) * static_cast<std::uint32_t>(arrays.npix) + static_cast<std::uint32_t>(c));
  }

  /// D^T of a dual image in shared memory, each of whose rows has `width` pixels.
  template <int width, typename Dual>
  MPOL_DEVICE static T adjoint(Dual& rows, Dual& columns, int at) {
    return (rows[at - width] - rows[at]) + (columns[at - 1] - columns[at]);
  }

  /// cut(q - k slope) M
  MPOL_DEVICE static T primal(const TvDualArrays<T>& arrays, PixelCut<T> cut, std::int64_t at, T q, T weight, T slope) {
    const T shining = cut(q - weight * slope);
    return arrays.mask.size > 0 ? shining * arrays.mask[at] : shining;
  }
};

/// S of an array in shared memory at one of its pixels.
template <typename T, typename Values>
MPOL_DEVICE T seen(bool hann, Values& values, int at, int width) {
  return hann ? gpu_math::hann<T>(values, at, width) : values[at];
}

/// An array in shared memory whose pixels are smoothed column by column: each thread takes runs of pixels below each other, so
/// that it adds up the row of three around each of them once.
template <typename Tile, int width, int height>
struct TvRuns {
  static constexpr int run = Tile::run, groups = (height + run - 1) / run;
  static constexpr int of_thread = (width * groups + Tile::threads - 1) / Tile::threads;
  static constexpr int values = of_thread * run;  // of a thread

  /// Calls run(i, row, column) for the pixels of a thread, i < values in the order of smooth().
  template <typename Run>
  MPOL_DEVICE static void each(int thread, const Run& each_pixel) {
    MPOL_UNROLL
    for (int item = 0; item < of_thread; ++item) {
      const int k = thread + item * Tile::threads;
      if (k >= width * groups) break;
      MPOL_UNROLL
      for (int j = 0; j < run; ++j) {
        const int row = k / width * run + j;
        if (row < height) each_pixel(item * run + j, row, k % width);
      }
    }
  }

  /// Calls write(i, row, column, S of the array there). @param source  whose rows have source_width values, one more each way
  template <int source_width, typename T, typename Source, typename Write>
  MPOL_DEVICE static void smooth(bool hann, Source& source, int thread, const Write& write) {
    MPOL_UNROLL
    for (int item = 0; item < of_thread; ++item) {
      const int k = thread + item * Tile::threads;
      if (k >= width * groups) break;
      const int column = k % width, first = k / width * run;
      const auto blended = [&](int row) {  // of the source's rows
        const int at = row * source_width + column + 1;
        return T(0.5) * source[at] + T(0.25) * (source[at - 1] + source[at + 1]);
      };
      T before = hann ? blended(first) : T(0), own = hann ? blended(first + 1) : T(0);
      MPOL_UNROLL
      for (int j = 0; j < run; ++j) {
        const int row = first + j;
        if (row >= height) break;
        T value;
        if (hann) {
          const T next = blended(row + 2);
          value = T(0.5) * own + T(0.25) * (before + next);
          before = own, own = next;
        } else {
          value = source[(row + 1) * source_width + column + 1];
        }
        write(item * run + j, row, column, value);
      }
    }
  }
};

/// One pass: p' of a tile, of v = p + momentum (p - before), whose momentum every block works out from what the blocks of the
/// pass before said of turning. What a block needs of memory is asked for before it waits for anything.
template <typename T, typename Tile>
struct TvRaiseBody {
  static constexpr int threads = Tile::threads, phases = 9;
  static constexpr int dual_width = Tile::width + 6, dual_height = Tile::height + 6;      // from 3 pixels before the tile
  static constexpr int slope_width = Tile::width + 5, slope_height = Tile::height + 5;    // from 2
  static constexpr int image_width = Tile::width + 3, image_height = Tile::height + 3;    // from 1
  static constexpr int smooth_width = Tile::width + 1, smooth_height = Tile::height + 1;  // from 0
  static constexpr int duals_of_thread = (dual_width * dual_height + threads - 1) / threads;
  using ImageRuns = TvRuns<Tile, image_width, image_height>;
  using SmoothRuns = TvRuns<Tile, smooth_width, smooth_height>;
  struct Shared {
    SharedArray<T, dual_width * dual_height> rows, columns;  // v
    SharedArray<T, slope_width * slope_height> slope;        // D^T v, then S x
    SharedArray<T, image_width * image_height> image;        // x
    BlockSums<1, threads> sums;
  };
  struct Local {
    T rows[duals_of_thread], columns[duals_of_thread], old_rows[duals_of_thread], old_columns[duals_of_thread];
    T q[ImageRuns::values];
    double t, next_t;  // of the pass before; of this one unless it has turned
    T turned;
  };

  TvDualArrays<T> arrays;

  std::int64_t blocks() const { return arrays.images() * arrays.template tiles<Tile>(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    const auto patch = TvDualPatch<T, Tile>::of(arrays, place.block);
    const std::int64_t problem = patch.image / arrays.nchan;
    if (!arrays.is_on(problem)) return;
    const double weight = arrays.weights[patch.image];
    const bool rises = weight > 0;  // else there is nothing in the duals of passes
    if constexpr (phase == 0) {
      if (rises) load(patch, place, local);
      local.t = arrays.pass > 0 ? arrays.t[(arrays.pass - 1) * arrays.problems + problem] : 1.0;
      add_turns(place.thread, problem, shared);
      local.next_t = (1.0 + gpu_math::square_root(1.0 + 4.0 * local.t * local.t)) / 2.0;
    }
    if constexpr (phase == 1) shared.sums.gather(place.thread);
    if constexpr (phase == 2) {
      const T factor = momentum(patch, place, problem, shared, local);
      if (rises) look_ahead(place, factor, shared, local);
    }
    if constexpr (phase == 3) {
      if (rises) find_slope(patch, place, shared);
    }
    if constexpr (phase == 4) {
      if (rises) find_image(patch, place, static_cast<T>(weight), shared, local);
    }
    if constexpr (phase == 5) {
      if (rises) find_smooth(patch, place, shared);
    }
    if constexpr (phase == 6) {
      local.turned = T(0);
      if (rises) raise(patch, place, static_cast<T>(1.0 / (8.0 * weight)), shared, local);
      shared.sums.put(place.thread, 0, static_cast<double>(local.turned));
    }
    if constexpr (phase == 7) shared.sums.gather(place.thread);
    if constexpr (phase == 8) {
      if (place.thread == 0) arrays.block_turns[place.block] = shared.sums.total(0);
    }
  }

 private:
  using Patch = TvDualPatch<T, Tile>;

  MPOL_DEVICE std::int64_t plane() const { return arrays.images() * std::int64_t{arrays.pixels()}; }

  MPOL_DEVICE void load(const Patch& patch, Place place, Local& local) const {
    MPOL_UNROLL
    for (int i = 0; i < duals_of_thread; ++i) {
      local.rows[i] = local.columns[i] = local.old_rows[i] = local.old_columns[i] = T(0);
      const int k = place.thread + i * threads;
      const std::int32_t r = patch.row + k / dual_width - 3, c = patch.column + k % dual_width - 3;
      if (k >= dual_width * dual_height || !patch.has(arrays, r, c)) continue;
      const std::int64_t at = patch.place(arrays, r, c);
      local.rows[i] = arrays.now[at], local.columns[i] = arrays.now[plane() + at];
      local.old_rows[i] = arrays.before[at], local.old_columns[i] = arrays.before[plane() + at];
    }
    ImageRuns::each(place.thread, [&](int i, int row, int column) {
      const std::int32_t r = patch.row + row - 1, c = patch.column + column - 1;
      local.q[i] = patch.has(arrays, r, c) ? arrays.q[patch.place(arrays, r, c)] : T(0);
    });
  }

  MPOL_DEVICE void add_turns(int thread, std::int64_t problem, Shared& shared) const {
    double sum = 0;
    if (arrays.pass > 0) {
      const std::int64_t count = arrays.turn_count();
      for (std::int64_t i = thread; i < count; i += threads) sum += arrays.turns[problem * count + i];
    }
    shared.sums.put(thread, 0, sum);
  }

  /// As DualAscent has it. The first block of a problem writes its t down for the next pass.
  MPOL_DEVICE T momentum(const Patch& patch, Place place, std::int64_t problem, Shared& shared, const Local& local) const {
    const bool anew = arrays.pass == 0 || shared.sums.total(0) > 0;
    if (place.thread == 0 && patch.row == 0 && patch.column == 0 && patch.image % arrays.nchan == 0)
      arrays.t[arrays.pass * arrays.problems + problem] = anew ? 1.0 : local.next_t;
    return anew ? T(0) : static_cast<T>((local.t - 1.0) / local.next_t);
  }

  MPOL_DEVICE void look_ahead(Place place, T factor, Shared& shared, const Local& local) const {
    MPOL_UNROLL
    for (int i = 0; i < duals_of_thread; ++i) {
      const int k = place.thread + i * threads;
      if (k >= dual_width * dual_height) break;
      shared.rows[k] = local.rows[i] + factor * (local.rows[i] - local.old_rows[i]);
      shared.columns[k] = local.columns[i] + factor * (local.columns[i] - local.old_columns[i]);
    }
  }

  MPOL_DEVICE void find_slope(const Patch& patch, Place place, Shared& shared) const {
    patch.template each<2, slope_width, slope_height>(arrays, place.thread, [&](int k, std::int32_t, std::int32_t, bool inside) {
      const int at = (k / slope_width + 1) * dual_width + k % slope_width + 1;
      shared.slope[k] = inside ? Patch::template adjoint<dual_width>(shared.rows, shared.columns, at) : T(0);
    });
  }

  MPOL_DEVICE void find_image(const Patch& patch, Place place, T weight, Shared& shared, const Local& local) const {
    const auto cut = arrays.cut(patch.image);
    ImageRuns::template smooth<slope_width, T>(arrays.hann, shared.slope, place.thread, [&](int i, int row, int column, T slope) {
      const std::int32_t r = patch.row + row - 1, c = patch.column + column - 1;
      shared.image[row * image_width + column] =
          patch.has(arrays, r, c) ? Patch::primal(arrays, cut, patch.place(arrays, r, c), local.q[i], weight, slope) : T(0);
    });
  }

  MPOL_DEVICE void find_smooth(const Patch& patch, Place place, Shared& shared) const {
    SmoothRuns::template smooth<image_width, T>(arrays.hann, shared.image, place.thread, [&](int, int row, int column, T value) {
      shared.slope[row * smooth_width + column] = patch.has(arrays, patch.row + row, patch.column + column) ? value : T(0);
    });
  }

  MPOL_DEVICE void raise(const Patch& patch, Place place, T step, Shared& shared, Local& local) const {
    patch.template each<0, Tile::width, Tile::height>(
        arrays, place.thread, [&](int k, std::int32_t r, std::int32_t c, bool inside) {
          if (!inside) return;
          const std::int64_t at = patch.place(arrays, r, c);
          T rows = T(0), columns = T(0);  // where no differences are counted
          const int own = (k / Tile::width + 3) * dual_width + k % Tile::width + 3;
          if (r + 1 < arrays.npix && c + 1 < arrays.npix) {
            const int smooth = k / Tile::width * smooth_width + k % Tile::width;
            const T center = shared.slope[smooth];
            rows = shared.rows[own] + step * (shared.slope[smooth + smooth_width] - center);
            columns = shared.columns[own] + step * (shared.slope[smooth + 1] - center);
            const T length = rows * rows + columns * columns;
            if (length > T(1)) {
              const T factor = gpu_math::reciprocal_square_root(length);
              rows *= factor, columns *= factor;
            }
          }
          local.turned += (shared.rows[own] - rows) * (rows - arrays.now[at]) +
                          (shared.columns[own] - columns) * (columns - arrays.now[plane() + at]);
          arrays.next[at] = rows, arrays.next[plane() + at] = columns;
        });
  }
};

/// Adds up what blocks say of turning, where there are many: each thread a group of one problem.
template <typename T, typename Tile>
struct TvGatherBody {
  static constexpr int threads = static_cast<int>(turn_groups), phases = 1;
  struct Shared {};
  struct Local {};

  TvDualArrays<T> arrays;

  std::int64_t blocks() const { return arrays.problems; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    if (!arrays.is_on(place.block)) return;
    const std::int64_t count = arrays.nchan * std::int64_t{arrays.template tiles<Tile>()};
    double sum = 0;
    for (std::int64_t i = place.thread; i < count; i += threads) sum += arrays.block_turns[place.block * count + i];
    arrays.group_turns[place.block * threads + place.thread] = sum;
  }
};

/// x of the last p', which becomes the dual image.
template <typename T, typename Tile>
struct TvFinishBody {
  static constexpr int threads = Tile::threads, phases = 3;
  static constexpr int dual_width = Tile::width + 3, dual_height = Tile::height + 3;    // from 2 pixels before the tile
  static constexpr int slope_width = Tile::width + 2, slope_height = Tile::height + 2;  // from 1
  struct Shared {
    SharedArray<T, dual_width * dual_height> rows, columns;
    SharedArray<T, slope_width * slope_height> slope;
  };
  struct Local {};

  TvDualArrays<T> arrays;

  std::int64_t blocks() const { return arrays.images() * arrays.template tiles<Tile>(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    const auto patch = TvDualPatch<T, Tile>::of(arrays, place.block);
    const double weight = arrays.weights[patch.image];
    const std::int64_t count = weight > 0 ? arrays.passes[patch.image / arrays.nchan] : 0;
    if constexpr (phase == 0) load(patch, place, count, shared);
    if constexpr (phase == 1) find_slope(patch, place, shared);
    if constexpr (phase == 2) write(patch, place, static_cast<T>(weight), count, shared);
  }

 private:
  using Patch = TvDualPatch<T, Tile>;

  MPOL_DEVICE T value(std::int64_t count, std::int64_t at) const {
    if (count == 0) return arrays.dual[at];
    switch ((count - 1) % 3) {
      case 0:
        return arrays.first[at];
      case 1:
        return arrays.second[at];
      default:
        return arrays.third[at];
    }
  }

  MPOL_DEVICE void load(const Patch& patch, Place place, std::int64_t count, Shared& shared) const {
    const std::int64_t plane = arrays.images() * std::int64_t{arrays.pixels()};
    patch.template each<2, dual_width, dual_height>(arrays, place.thread,
                                                    [&](int k, std::int32_t r, std::int32_t c, bool inside) {
                                                      const std::int64_t at = inside ? patch.place(arrays, r, c) : 0;
                                                      shared.rows[k] = inside ? value(count, at) : T(0);
                                                      shared.columns[k] = inside ? value(count, plane + at) : T(0);
                                                    });
  }

  MPOL_DEVICE void find_slope(const Patch& patch, Place place, Shared& shared) const {
    patch.template each<1, slope_width, slope_height>(arrays, place.thread, [&](int k, std::int32_t, std::int32_t, bool inside) {
      const int at = (k / slope_width + 1) * dual_width + k % slope_width + 1;
      shared.slope[k] = inside ? Patch::template adjoint<dual_width>(shared.rows, shared.columns, at) : T(0);
    });
  }

  MPOL_DEVICE void write(const Patch& patch, Place place, T weight, std::int64_t count, Shared& shared) const {
    const std::int64_t plane = arrays.images() * std::int64_t{arrays.pixels()};
    const auto cut = arrays.cut(patch.image);
    patch.template each<0, Tile::width, Tile::height>(
        arrays, place.thread, [&](int k, std::int32_t r, std::int32_t c, bool inside) {
          if (!inside) return;
          const std::int64_t at = patch.place(arrays, r, c);
          const int slope = (k / Tile::width + 1) * slope_width + k % Tile::width + 1;
          arrays.x[at] =
              Patch::primal(arrays, cut, at, arrays.q[at], weight, seen<T>(arrays.hann, shared.slope, slope, slope_width));
          if (count == 0) return;
          const int own = (k / Tile::width + 2) * dual_width + k % Tile::width + 2;
          arrays.dual[at] = shared.rows[own], arrays.dual[plane + at] = shared.columns[own];
        });
  }
};

}  // namespace mpol::ops
