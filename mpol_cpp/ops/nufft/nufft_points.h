#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <mpol_cpp/ops/nufft/nufft_coordinates.h>
#include <mpol_cpp/ops/nufft/nufft_kernels.h>
#include <mpol_cpp/ops/memory/point_array.h>

namespace mpol::ops {

/// Where the cells of the fine uv grid lie that points reach: u >= 0 from `first_u` (guard columns of negative u) on,
/// v from `first_v` on, in cells of half the uv cell of the image.
struct NufftExtent {
  std::int64_t first_u, first_v;
  std::int64_t tiles_u, tiles_v;
  std::int64_t last_u;  ///< last column that a footprint reaches
  std::int64_t last_v;  ///< largest |v| that a footprint reaches
};

/// The part of a tile's points that one thread works off.
struct NufftTask {
  std::int64_t begin, end;          ///< points one by one
  std::int64_t run_begin, run_end;  ///< then runs
  std::int64_t buffer;              ///< its own copy of the tile, or -1 where the tile has one task
};

struct NufftTileTasks {
  std::int32_t u, v;  ///< tile indices
  std::int64_t first_task, end_task;
};

/// Points of the uv plane folded to u >= 0, sorted by tile and cell of the fine grid. A coordinate is kept as its cell
/// and its offset from it, both from float64.
template <typename T>
class NufftPoints {
 public:
  /// Points of a cell that has so many are worked off as a run.
  static constexpr std::int64_t dense_count = 24;
  static constexpr std::int64_t task_points = 8192;

  /// @param u, v   wavelengths, finite, |u| scale and |v| scale <= fine grid / 4
  /// @param scale  cells of the fine grid per wavelength
  /// @throws ValueError for 2^31 points or more
  NufftPoints(const double* u, const double* v, std::int64_t count, double scale, double max_abs_u, double max_abs_v, int width);
  NufftPoints(const NufftCoordinateSource& coordinates, std::int64_t count, double scale, double max_abs_u, double max_abs_v,
              int width);

  std::int64_t count() const { return count_; }
  const NufftExtent& extent() const { return extent_; }
  const std::vector<NufftTileTasks>& tiles() const { return tiles_; }
  const std::vector<NufftTask>& tasks() const { return tasks_; }
  std::int64_t buffers() const { return buffers_; }
  NufftTilePoints<T> points_of(const NufftTask& task) const;

  /// Index of the i-th sorted point among those given.
  std::int64_t source(std::int64_t i) const { return order_.data()[i] & ~mirrored_bit; }
  /// True where it was folded: its values are the conjugates of those given.
  bool mirrored(std::int64_t i) const { return (order_.data()[i] & mirrored_bit) != 0; }

  /// Before value i is read from an array in the order given, or written: one that comes later is fetched into the cache.
  /// Without it a processor waits for most of the values of points in no order.
  template <typename Value>
  void fetch_ahead(std::int64_t i, const Value* values) const {
    __builtin_prefetch(values + source(std::min(i + fetch_distance, count_ - 1)));
  }

  std::int64_t memory_bytes() const;

 private:
  static constexpr std::uint32_t mirrored_bit = 1U << 31;
  static constexpr std::int64_t fetch_distance = 128;
  struct Place;
  struct Record;
  Place place(double u, double v) const;
  void sort(const NufftCoordinateSource& coordinates);
  void sort_tile(const Record* records, std::int64_t begin, std::int64_t end, std::vector<NufftRun>& runs, std::int64_t& dense);
  void plan_tasks(const std::vector<std::int64_t>& tile_begin, const std::vector<std::vector<NufftRun>>& runs,
                  const std::vector<std::int64_t>& dense_begin);

  std::int64_t count_;
  double scale_, half_width_;
  int width_;
  NufftTile tile_;
  NufftExtent extent_;
  PointArray<T> x_, y_;
  PointArray<std::uint16_t> cell_;
  PointArray<std::uint32_t> order_;
  std::vector<NufftRun> runs_;
  std::vector<NufftTask> tasks_;
  std::vector<NufftTileTasks> tiles_;
  std::int64_t buffers_ = 0;
};

}  // namespace mpol::ops
