#pragma once

// The kernels of the nonuniform transform over images and planes; C++17.
#include <mpol_cpp/ops/nufft/gpu/nufft_gpu_arrays.h>

namespace mpol::ops {

inline constexpr int nufft_plane_threads = 256;

/// One phase; a block is a piece of a row, one element a thread.
template <typename T>
struct NufftRowBody {
  static constexpr int threads = nufft_plane_threads, phases = 1;
  struct Shared {};
  struct Local {};

  NufftGpuArrays<T> arrays;

 protected:
  struct Element {
    int image, row, column;
  };
  MPOL_DEVICE static std::uint32_t pieces(int columns) { return static_cast<std::uint32_t>((columns + threads - 1) / threads); }
  MPOL_DEVICE std::int64_t blocks_of(int rows, int columns) const {
    return std::int64_t{arrays.shape.images} * rows * pieces(columns);
  }
  MPOL_DEVICE static Element element(const Place& place, int rows, int columns) {
    const auto block = static_cast<std::uint32_t>(place.block), count = static_cast<std::uint32_t>(rows);
    const std::uint32_t line = block / pieces(columns), piece = block % pieces(columns);
    return {static_cast<int>(line / count), static_cast<int>(line % count), static_cast<int>(piece) * threads + place.thread};
  }
  /// The factor of the pixel at (row, column) of the sky, which lies at m = row - npix/2, l = npix/2 - 1 - column.
  MPOL_DEVICE T factor(int row, int column) const {
    return arrays.scale * arrays.correction[row] * arrays.correction[arrays.shape.npix - 1 - column];
  }
  MPOL_DEVICE std::int64_t pixel(const Element& at) const {
    return (std::int64_t{at.image} * arrays.shape.npix + at.row) * arrays.shape.npix + at.column;
  }
};

/// plane = scale image / transform of the window, zero around it
template <typename T>
struct NufftPadBody : NufftRowBody<T> {
  using Base = NufftRowBody<T>;

  std::int64_t blocks() const { return this->blocks_of(this->arrays.shape.period(), this->arrays.shape.period()); }

  template <int phase>
  MPOL_DEVICE void run(Place place, typename Base::Shared&, typename Base::Local&) const {
    const auto& all = this->arrays;
    const int npix = all.shape.npix, period = all.shape.period();
    const auto at = Base::element(place, period, period);
    if (at.column >= period) return;
    const int row = (at.row < npix ? at.row : at.row - period) + npix / 2;
    const int column = npix / 2 - 1 - (at.column < npix ? at.column : at.column - period);
    T value = T(0);
    if (row >= 0 && row < npix && column >= 0 && column < npix) {
      value = all.image[this->pixel({at.image, row, column})] * this->factor(row, column);
    }
    all.plane[(std::int64_t{at.image} * period + at.row) * period + at.column] = value;
  }
};

/// image = scale plane / transform of the window
template <typename T>
struct NufftCropBody : NufftRowBody<T> {
  using Base = NufftRowBody<T>;

  std::int64_t blocks() const { return this->blocks_of(this->arrays.shape.npix, this->arrays.shape.npix); }

  template <int phase>
  MPOL_DEVICE void run(Place place, typename Base::Shared&, typename Base::Local&) const {
    const auto& all = this->arrays;
    const int npix = all.shape.npix, period = all.shape.period();
    const auto at = Base::element(place, npix, npix);
    if (at.column >= npix) return;
    const int m = nufft_wrapped(at.row - npix / 2, period), l = nufft_wrapped(npix / 2 - 1 - at.column, period);
    all.image[this->pixel(at)] = all.plane[(std::int64_t{at.image} * period + m) * period + l] * this->factor(at.row, at.column);
  }
};

/// What the tasks gridded becomes the half plane whose unnormalised inverse real transform is the real part of that of all
/// points: H(k) = (P(k) + conj P(-k)) / 2, with P on the torus of the fine grid. Tiles overlap; their sums have a fixed order.
template <typename T>
struct NufftGatherBody : NufftRowBody<T> {
  using Base = NufftRowBody<T>;

  std::int64_t blocks() const { return this->blocks_of(this->arrays.shape.period(), this->arrays.shape.half()); }

  template <int phase>
  MPOL_DEVICE void run(Place place, typename Base::Shared&, typename Base::Local&) const {
    const auto& shape = this->arrays.shape;
    const auto at = Base::element(place, shape.period(), shape.half());
    if (at.column >= shape.half()) return;
    const auto there = on_torus(at.image, at.column, at.row), opposite = on_torus(at.image, -at.column, -at.row);
    this->arrays.half[at.image * shape.half_plane() + std::int64_t{at.row} * shape.half() + at.column] = {
        T(0.5) * (there.real + opposite.real), T(0.5) * (there.imag - opposite.imag)};
  }

 private:
  MPOL_DEVICE ComplexValue<T> on_torus(int image, int u, int v) const {
    const auto& shape = this->arrays.shape;
    const int period = shape.period(), beyond = shape.side() - NufftTile::cells;
    const int columns = shape.tiles_u * NufftTile::cells + beyond, rows = shape.tiles_v * NufftTile::cells + beyond;
    ComplexValue<T> sum{T(0), T(0)};
    for (int row = nufft_wrapped(v - shape.first_v, period); row < rows; row += period) {
      for (int column = nufft_wrapped(u - shape.first_u, period); column < columns; column += period) {
        add_cell(image, column, row, sum);
      }
    }
    return sum;
  }

  /// The tiles that reach a cell.
  MPOL_DEVICE static int first_tile(int cell, int side) { return cell < side ? 0 : (cell - side) / NufftTile::cells + 1; }
  MPOL_DEVICE static int last_tile(int cell, int tiles) {
    return cell / NufftTile::cells < tiles ? cell / NufftTile::cells : tiles - 1;
  }

  MPOL_DEVICE void add_cell(int image, int column, int row, ComplexValue<T>& sum) const {
    const auto& all = this->arrays;
    const auto& shape = all.shape;
    const int side = shape.side(), last_u = last_tile(column, shape.tiles_u), last_v = last_tile(row, shape.tiles_v);
    for (int u = first_tile(column, side); u <= last_u; ++u) {
      for (int v = first_tile(row, side); v <= last_v; ++v) {
        const int at = (row - v * NufftTile::cells) * side + column - u * NufftTile::cells;
        const std::int64_t tile = std::int64_t{u} * shape.tiles_v + v, begin = all.tile_begin[tile];
        auto tasks = static_cast<int>(all.tile_begin[tile + 1] - begin);
        for (std::int64_t place = (image * shape.tasks + begin) * side * side + at; tasks > 0; --tasks, place += side * side) {
          const auto value = all.tile[place];
          sum.real += value.real;
          sum.imag += value.imag;
        }
      }
    }
  }
};

/// chi^2 of each image from those of its tasks, one block each.
template <typename T>
struct NufftSumBody {
  static constexpr int threads = nufft_plane_threads, phases = 3;
  struct Shared {
    BlockSums<1, threads> sums;
  };
  struct Local {};

  NufftGpuArrays<T> arrays;

  std::int64_t blocks() const { return arrays.shape.images; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if constexpr (phase == 0) {
      double sums[1] = {};
      for (std::int64_t i = place.thread; i < arrays.shape.tasks; i += threads) {
        sums[0] += arrays.task_values[place.block * arrays.shape.tasks + i];
      }
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else if (place.thread == 0) {
      arrays.values[place.block] = shared.sums.total(0);
    }
  }
};

}  // namespace mpol::ops
