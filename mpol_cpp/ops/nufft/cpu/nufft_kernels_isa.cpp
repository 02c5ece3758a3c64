// Compiled once per instruction set: everything here is in an unnamed namespace but the one function that names it.
#include <mpol_cpp/ops/nufft/cpu/nufft_run_kernels.h>

namespace mpol::ops::MPOL_ISA {
namespace {

template <typename T, int width, Task task>
void work_tile(const NufftTables<T>& tables, const NufftTilePoints<T>& points, NufftImage<T>* images, int count) {
  Values<T> values[nufft_max_images];
  for (int n = 0; n < count; ++n) values[n] = {images[n], points.first, {}};
  if (task == Task::degrid && count == 1) work_points<T, width, Task::degrid, OwnRows<T, width>>(tables, points, values, 1);
  else work_points<T, width, task, KeptRows<T, width>>(tables, points, values, count);
  for (int n = 0; n < count; ++n) {
    for (std::int64_t r = 0; r < points.run_count; ++r) work_run<T, width, task>(tables, points, points.runs[r], values[n]);
    if constexpr (task == Task::fused) images[n].chi_squared = values[n].chi_squared.total();
  }
}

template <typename T, int width>
void add_tile(const T* sums, T* cells, std::int64_t distance) {
  constexpr int L = lanes<T>;
  constexpr auto tile = NufftTile::of(width, sizeof(T));
  static_assert(tile.rows <= 2 * NufftTile::cells && 4 * NufftTile::cells % L == 0);
  for (int column = 0; column < tile.columns; ++column, sums += tile.distance, cells += distance) {
    for (int i = 0; i < 2 * tile.rows; i += L) store<T>(cells + i, load<T>(cells + i) + load<T>(sums + i));
  }
}

template <typename T, int width>
NufftKernels<T> of_width() {
  return {work_tile<T, width, Task::degrid>, work_tile<T, width, Task::grid>, work_tile<T, width, Task::fused>,
          add_tile<T, width>};
}

}  // namespace

template <typename T>
NufftKernels<T> nufft_kernels(int width) {
  if constexpr (sizeof(T) == 4) {
    if (width == 4) return of_width<T, 4>();
    if (width == 5) return of_width<T, 5>();
    if (width == 6) return of_width<T, 6>();
    if (width == 7) return of_width<T, 7>();
  } else {
    if (width == 6) return of_width<T, 6>();
    if (width == 7) return of_width<T, 7>();
    if (width == 9) return of_width<T, 9>();
    if (width == 12) return of_width<T, 12>();
    if (width == 14) return of_width<T, 14>();
    if (width == 15) return of_width<T, 15>();
  }
  return {};
}

template NufftKernels<float> nufft_kernels(int);
template NufftKernels<double> nufft_kernels(int);

}  // namespace mpol::ops::MPOL_ISA
