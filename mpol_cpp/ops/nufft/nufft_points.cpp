#include <mpol_cpp/ops/nufft/nufft_points.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t nufft_tile_cells = NufftTile::cells;

NufftExtent extent_of(double max_u, double max_v, int width) {
  NufftExtent extent = {};
  const double half = width / 2.0;
  extent.first_u = -(width + 1) / 2;
  extent.last_v = static_cast<std::int64_t>(std::floor(max_v + half)) + 1;
  extent.first_v = -extent.last_v;
  const auto last_first_u = static_cast<std::int64_t>(std::ceil(max_u - half));
  extent.last_u = last_first_u + width - 1;
  extent.tiles_u = (last_first_u - extent.first_u) / nufft_tile_cells + 1;
  extent.tiles_v = (2 * extent.last_v) / nufft_tile_cells + 1;
  return extent;
}

}  // namespace

template <typename T>
struct NufftPoints<T>::Place {
  std::int64_t tile;
  int cell;  // of the tile
  bool mirrored;
  T x, y;
};

template <typename T>
struct NufftPoints<T>::Record {
  T x, y;
  std::uint32_t order;
  std::uint32_t cell;
};

template <typename T>
NufftPoints<T>::NufftPoints(const double* u, const double* v, std::int64_t count, double scale, double max_abs_u,
                            double max_abs_v, int width)
    : NufftPoints(
          [u, v](std::int64_t begin, std::int64_t) {
            return NufftCoordinates{u + begin, v + begin, nullptr};
          },
          count, scale, max_abs_u, max_abs_v, width) {}

template <typename T>
NufftPoints<T>::NufftPoints(const NufftCoordinateSource& coordinates, std::int64_t count, double scale, double max_abs_u,
                            double max_abs_v, int width)
    : count_(count),
      scale_(scale),
      half_width_(width / 2.0),
      width_(width),
      tile_(NufftTile::of(width, sizeof(T))),
      extent_(extent_of(max_abs_u * scale, max_abs_v * scale, width)),
      x_(count),
      y_(count),
      cell_(count),
      order_(count) {
  if (count >= std::int64_t{1} << 31) {
    throw ValueError(fmt::format("{} visibilities in one channel; at most 2^31 - 1 are possible: split them into blocks", count));
  }
  sort(coordinates);
}

template <typename T>
typename NufftPoints<T>::Place NufftPoints<T>::place(double u, double v) const {
  const bool mirrored = u < 0;
  const double a = (mirrored ? -u : u) * scale_, b = (mirrored ? -v : v) * scale_;
  const double first_a = std::ceil(a - half_width_), first_b = std::ceil(b - half_width_);
  const auto column = static_cast<std::int64_t>(first_a) - extent_.first_u;
  const auto row = static_cast<std::int64_t>(first_b) - extent_.first_v;
  const double center = (width_ - 1) / 2.0;
  return {column / nufft_tile_cells * extent_.tiles_v + row / nufft_tile_cells,
          static_cast<int>(column % nufft_tile_cells * nufft_tile_cells + row % nufft_tile_cells), mirrored,
          static_cast<T>(a - first_a - center), static_cast<T>(b - first_b - center)};
}

template <typename T>
void NufftPoints<T>::sort(const NufftCoordinateSource& coordinates) {
  const auto tile_count = extent_.tiles_u * extent_.tiles_v;
  // The sort is stable: its result does not depend on the number of chunks.
  const auto chunks = std::clamp<std::int64_t>(count_ / 65536, 1, at::get_num_threads());
  const auto first_of = [&](std::int64_t chunk) { return count_ * chunk / chunks; };
  const auto each_place = [&](std::int64_t chunk, const auto& use) {
    constexpr std::int64_t together = 32768;
    const auto last = first_of(chunk + 1);
    for (auto begin = first_of(chunk); begin < last; begin += together) {
      const auto end = std::min(last, begin + together);
      const auto points = coordinates(begin, end);
      for (auto i = begin; i < end; ++i) use(i, place(points.u[i - begin], points.v[i - begin]));
    }
  };
  std::vector<std::vector<std::int64_t>> next(static_cast<std::size_t>(chunks));
  share_tasks(chunks, 1, [&](std::int64_t chunk, std::int64_t) {
    auto& counts = next[static_cast<std::size_t>(chunk)];
    counts.assign(static_cast<std::size_t>(tile_count), 0);
    each_place(chunk, [&](std::int64_t, const Place& at) { ++counts[static_cast<std::size_t>(at.tile)]; });
  });
  std::vector<std::int64_t> tile_begin(static_cast<std::size_t>(tile_count) + 1);
  std::int64_t sum = 0;
  for (std::size_t tile = 0; tile < static_cast<std::size_t>(tile_count); ++tile) {
    tile_begin[tile] = sum;
    for (auto& counts : next) sum += std::exchange(counts[tile], sum);
  }
  tile_begin.back() = sum;

  PointArray<Record> records(count_);
  share_tasks(chunks, 1, [&](std::int64_t chunk, std::int64_t) {
    auto& places = next[static_cast<std::size_t>(chunk)];
    each_place(chunk, [&](std::int64_t i, const Place& at) {
      records.data()[places[static_cast<std::size_t>(at.tile)]++] = {
          at.x, at.y, static_cast<std::uint32_t>(i) | (at.mirrored ? mirrored_bit : 0), static_cast<std::uint32_t>(at.cell)};
    });
  });

  std::vector<std::vector<NufftRun>> runs(static_cast<std::size_t>(tile_count));
  std::vector<std::int64_t> dense_begin(static_cast<std::size_t>(tile_count));
  share_tasks(tile_count, 1, [&](std::int64_t tile, std::int64_t) {
    const auto t = static_cast<std::size_t>(tile);
    if (tile_begin[t] < tile_begin[t + 1]) sort_tile(records.data(), tile_begin[t], tile_begin[t + 1], runs[t], dense_begin[t]);
  });
  plan_tasks(tile_begin, runs, dense_begin);
}

template <typename T>
void NufftPoints<T>::sort_tile(const Record* records, std::int64_t begin, std::int64_t end, std::vector<NufftRun>& runs,
                               std::int64_t& dense) {
  std::array<std::int64_t, nufft_tile_cells*nufft_tile_cells> counts = {}, next;
  for (auto i = begin; i < end; ++i) ++counts[records[i].cell];
  const auto is_dense = [&](std::size_t cell) { return counts[cell] >= dense_count; };
  const auto first_real = [&](std::size_t cell) {
    return static_cast<std::int32_t>(cell / nufft_tile_cells) * tile_.distance +
           2 * static_cast<std::int32_t>(cell % nufft_tile_cells);
  };
  auto at = begin;
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    if (is_dense(cell)) continue;
    next[cell] = at;
    at += counts[cell];
  }
  dense = at;
  for (std::size_t cell = 0; cell < counts.size(); ++cell) {
    if (!is_dense(cell)) continue;
    next[cell] = at;
    for (const auto last = at + counts[cell]; at < last; at = std::min(at + task_points, last)) {
      runs.push_back({at, static_cast<std::int32_t>(std::min(last - at, task_points)), first_real(cell)});
    }
  }
  for (auto i = begin; i < end; ++i) {
    const auto& record = records[i];
    const auto to = next[record.cell]++;
    x_.data()[to] = record.x;
    y_.data()[to] = record.y;
    order_.data()[to] = record.order;
    cell_.data()[to] = static_cast<std::uint16_t>(first_real(record.cell));
  }
}

template <typename T>
void NufftPoints<T>::plan_tasks(const std::vector<std::int64_t>& tile_begin, const std::vector<std::vector<NufftRun>>& runs,
                                const std::vector<std::int64_t>& dense_begin) {
  for (std::size_t t = 0; t < runs.size(); ++t) {
    if (tile_begin[t] == tile_begin[t + 1]) continue;
    const auto first_task = static_cast<std::int64_t>(tasks_.size());
    auto run = static_cast<std::int64_t>(runs_.size());
    auto begin = tile_begin[t];
    for (; dense_begin[t] - begin > task_points; begin += task_points)
      tasks_.push_back({begin, begin + task_points, run, run, -1});
    NufftTask task{begin, dense_begin[t], run, run, -1};
    auto points = task.end - task.begin;
    for (const auto& piece : runs[t]) {
      if (points > 0 && points + piece.count > task_points) {
        tasks_.push_back(task);
        task = {dense_begin[t], dense_begin[t], run, run, -1};
        points = 0;
      }
      runs_.push_back(piece);
      task.run_end = ++run;
      points += piece.count;
    }
    if (points > 0) tasks_.push_back(task);
    const auto end_task = static_cast<std::int64_t>(tasks_.size());
    if (end_task - first_task > 1) {
      for (auto i = first_task; i < end_task; ++i) tasks_[static_cast<std::size_t>(i)].buffer = buffers_++;
    }
    const auto tile = static_cast<std::int64_t>(t);
    tiles_.push_back({static_cast<std::int32_t>(tile / extent_.tiles_v), static_cast<std::int32_t>(tile % extent_.tiles_v),
                      first_task, end_task});
  }
}

template <typename T>
NufftTilePoints<T> NufftPoints<T>::points_of(const NufftTask& task) const {
  const auto* runs = runs_.data() + task.run_begin;
  const auto run_count = task.run_end - task.run_begin;
  const auto first = task.begin < task.end || run_count == 0 ? task.begin : runs[0].begin;
  const auto last = run_count == 0 ? task.end : runs[run_count - 1].begin + runs[run_count - 1].count;
  return {x_.data(), y_.data(), cell_.data(), task.begin, task.end, runs, run_count, first, last};
}

template <typename T>
std::int64_t NufftPoints<T>::memory_bytes() const {
  return static_cast<std::int64_t>(x_.bytes() + y_.bytes() + cell_.bytes() + order_.bytes() + runs_.size() * sizeof(NufftRun) +
                                   tasks_.size() * sizeof(NufftTask) + tiles_.size() * sizeof(NufftTileTasks));
}

template class NufftPoints<float>;
template class NufftPoints<double>;

}  // namespace mpol::ops
