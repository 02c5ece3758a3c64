#include <mpol_cpp/ops/nufft_plan.h>

#include <mutex>
#include <utility>
#include <vector>

#include <mpol_cpp/ops/nufft_memory.h>
#include <mpol_cpp/ops/nufft_points.h>
#include <mpol_cpp/ops/nufft_rows.h>
#include <mpol_cpp/ops/nufft_window.h>

namespace mpol::ops {

template <typename T>
struct NufftPlan<T>::Data {
  explicit Data(std::int64_t count) : real(count), imag(count), weight(count) {}
  PointArray<T> real, imag, weight;
};

template <typename T>
class NufftPlan<T>::Transforms {
 public:
  using Complex = std::complex<T>;

  Transforms(const NufftSettings& settings, const double* u, const double* v, std::int64_t count, double max_abs_u,
             double max_abs_v)
      : npix_(settings.npix),
        width_(nufft_width<T>(settings.tolerance)),
        tile_(NufftTile::of(width_, sizeof(T))),
        points_(u, v, count, 2.0 * static_cast<double>(npix_) * settings.pixel, max_abs_u, max_abs_v, width_),
        rows_(npix_),
        kept_(std::min(points_.extent().last_u, npix_) + 1),
        grid_distance_(AlignedArray<Complex>::padded(points_.extent().tiles_v * NufftTile::cells + tile_.distance) +
                       AlignedArray<Complex>::line),
        grid_columns_(std::max((points_.extent().tiles_u - 1) * NufftTile::cells + tile_.columns, kept_ + guard() + 1)),
        kernels_(nufft_kernels<T>(selected_isa(), width_)) {
    const NufftWindow window(width_);
    tables_ = std::make_unique<NufftTables<T>>(window.tables<T>());
    for (std::int64_t i = -npix_ / 2; i < npix_ / 2; ++i) {
      correction_.push_back(1 / window.transform(static_cast<double>(i) / (2.0 * static_cast<double>(npix_))));
    }
    for (const double value : correction_) column_factors_.push_back(static_cast<T>(value));
    chi_squared_.resize(points_.tasks().size());
  }

  const NufftPoints<T>& points() const { return points_; }

  void type2(const T* image, double scale, Complex* visibilities) {
    const std::lock_guard lock(mutex_);
    prepare();
    to_grid(image, scale);
    const auto& [real, imag] = sorted_values();
    each_task([&](const NufftTask& task, const NufftTileTasks& tile, std::int64_t worker) {
      T* cells = tile_in(worker);
      copy_tile(tile, cells);
      kernels_.degrid(*tables_, points_.points_of(task), cells, real.data(), imag.data());
    });
    each_block([&](std::int64_t i) {
      visibilities[points_.source(i)] = {real.data()[i], points_.mirrored(i) ? -imag.data()[i] : imag.data()[i]};
    });
  }

  void type1(const Complex* visibilities, double scale, T* image, Accumulate accumulate) {
    const std::lock_guard lock(mutex_);
    prepare();
    const auto& [real, imag] = sorted_values();
    each_block([&](std::int64_t i) {
      const auto value = visibilities[points_.source(i)];
      real.data()[i] = value.real();
      imag.data()[i] = points_.mirrored(i) ? -value.imag() : value.imag();
    });
    grid_sorted(real, imag);
    from_grid(image, scale, accumulate);
  }

  double fused(const T* image, double scale, const Data& data, T* gradient, Accumulate accumulate) {
    const std::lock_guard lock(mutex_);
    prepare();
    to_grid(image, scale);
    spread([&](const NufftTask& task, const NufftTileTasks& tile, std::int64_t worker, T* out) {
      T* cells = tile_in(worker);
      copy_tile(tile, cells);
      chi_squared_[static_cast<std::size_t>(&task - points_.tasks().data())] =
          kernels_.fused(*tables_, points_.points_of(task), data.real.data(), data.imag.data(), data.weight.data(), cells, out);
    });
    from_grid(gradient, 2 * scale, accumulate);
    double sum = 0;
    for (const double value : chi_squared_) sum += value;
    return sum;
  }

  void dirty_and_beam(const Data& data, double scale, T* dirty, double beam_scale, T* beam) {
    const std::lock_guard lock(mutex_);
    prepare();
    const auto& [real, imag] = sorted_values();
    each_block([&](std::int64_t i) {
      real.data()[i] = data.weight.data()[i] * data.real.data()[i];
      imag.data()[i] = data.weight.data()[i] * data.imag.data()[i];
    });
    grid_sorted(real, imag);
    from_grid(dirty, scale, Accumulate::overwrite);
    each_block([&](std::int64_t i) { imag.data()[i] = 0; });
    grid_sorted(data.weight, imag);
    from_grid(beam, beam_scale, Accumulate::overwrite);
  }

  std::int64_t memory_bytes() const {
    const auto scratch = sizeof(T) * static_cast<std::size_t>(2 * tile_.size());
    return points_.memory_bytes() + static_cast<std::int64_t>(2 * values_.first.bytes()) +
           static_cast<std::int64_t>(
               sizeof(Complex) * static_cast<std::size_t>(2 * grid_columns_ * grid_distance_ + kept_ * rows_.column_distance()) +
               sizeof(T) * static_cast<std::size_t>(points_.buffers() * tile_.size()) +
               scratch * static_cast<std::size_t>(at::get_num_threads()));
  }

 private:
  std::int64_t guard() const { return -points_.extent().first_u; }
  /// Cells of a grid column that hold something: v of [-last_v, last_v].
  std::int64_t grid_rows() const { return 2 * points_.extent().last_v + 1; }

  void prepare() {
    while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) {
      scratch_.push_back(rows_.scratch());
      tiles_.emplace_back(2 * tile_.size());
    }
    if (columns_.size() == 0) columns_ = AlignedArray<Complex>(kept_ * rows_.column_distance());
    if (residual_grid_.size() == 0) residual_grid_ = AlignedArray<Complex>(grid_columns_ * grid_distance_);
    if (grid_.size() == 0) grid_ = AlignedArray<Complex>(grid_columns_ * grid_distance_);
    if (buffers_.size() == 0) buffers_ = AlignedArray<T>(points_.buffers() * tile_.size() + 1);
  }

  /// Real and imaginary parts in the order of the points, of a transform to or from the order of the caller.
  const std::pair<PointArray<T>, PointArray<T>>& sorted_values() {
    if (values_.first.size() == 0) values_ = {PointArray<T>(points_.count()), PointArray<T>(points_.count())};
    return values_;
  }

  T* tile_in(std::int64_t worker) const { return tiles_[static_cast<std::size_t>(worker)].data(); }
  T* tile_out(std::int64_t worker) const { return tile_in(worker) + tile_.size(); }
  T* tile_corner(const AlignedArray<Complex>& grid, const NufftTileTasks& tile) const {
    return reinterpret_cast<T*>(grid.data() + tile.u * NufftTile::cells * grid_distance_ + tile.v * NufftTile::cells);
  }

  void copy_tile(const NufftTileTasks& tile, T* cells) const {
    const T* from = tile_corner(grid_, tile);
    for (int column = 0; column < tile_.columns; ++column) {
      std::memcpy(cells + column * tile_.distance, from + column * 2 * grid_distance_,
                  static_cast<std::size_t>(tile_.distance) * sizeof(T));
    }
  }

  void add_tile(const T* cells, const NufftTileTasks& tile) const {
    T* to = tile_corner(residual_grid_, tile);
    for (int column = 0; column < tile_.columns; ++column, cells += tile_.distance, to += 2 * grid_distance_) {
      for (int i = 0; i < 2 * tile_.rows; ++i) to[i] += cells[i];
    }
  }

  template <typename Body>
  void each_task(const Body& body) {
    const auto& tiles = points_.tiles();
    share_tasks(static_cast<std::int64_t>(tiles.size()), 1, [&](std::int64_t t, std::int64_t worker) {
      const auto& tile = tiles[static_cast<std::size_t>(t)];
      for (auto i = tile.first_task; i < tile.end_task; ++i) body(points_.tasks()[static_cast<std::size_t>(i)], tile, worker);
    });
  }

  template <typename Body>
  void each_block(const Body& body) const {
    constexpr std::int64_t block = 16384;
    share_tasks((points_.count() + block - 1) / block, 1, [&](std::int64_t b, std::int64_t) {
      for (auto i = b * block; i < std::min(points_.count(), (b + 1) * block); ++i) body(i);
    });
  }

  /// Tasks add to tiles of their own; tiles are added to the grid in four passes, neighbours never at the same time.
  template <typename Body>
  void spread(const Body& body) {
    share_tasks(grid_columns_, 8, [&](std::int64_t column, std::int64_t) {
      std::fill_n(residual_grid_.data() + column * grid_distance_, grid_distance_, Complex(0));
    });
    const auto& tasks = points_.tasks();
    const auto& tiles = points_.tiles();
    const auto run_task = [&](const NufftTask& task, const NufftTileTasks& tile, std::int64_t worker, T* out) {
      std::fill_n(out, tile_.size(), T(0));
      body(task, tile, worker, out);
    };
    std::vector<std::pair<const NufftTask*, const NufftTileTasks*>> buffered;
    std::vector<const NufftTileTasks*> coloured[4];
    for (const auto& tile : tiles) {
      coloured[(tile.u % 2) * 2 + tile.v % 2].push_back(&tile);
      if (tile.end_task - tile.first_task == 1) continue;
      for (auto i = tile.first_task; i < tile.end_task; ++i) buffered.emplace_back(&tasks[static_cast<std::size_t>(i)], &tile);
    }
    share_tasks(static_cast<std::int64_t>(buffered.size()), 1, [&](std::int64_t i, std::int64_t worker) {
      const auto& [task, tile] = buffered[static_cast<std::size_t>(i)];
      run_task(*task, *tile, worker, buffers_.data() + task->buffer * tile_.size());
    });
    for (const auto& colour : coloured) {
      share_tasks(static_cast<std::int64_t>(colour.size()), 1, [&](std::int64_t t, std::int64_t worker) {
        const auto& tile = *colour[static_cast<std::size_t>(t)];
        const auto& first = tasks[static_cast<std::size_t>(tile.first_task)];
        if (first.buffer < 0) {
          run_task(first, tile, worker, tile_out(worker));
          add_tile(tile_out(worker), tile);
          return;
        }
        for (auto i = tile.first_task; i < tile.end_task; ++i) {
          add_tile(buffers_.data() + tasks[static_cast<std::size_t>(i)].buffer * tile_.size(), tile);
        }
      });
    }
  }

  void grid_sorted(const PointArray<T>& real, const PointArray<T>& imag) {
    spread([&](const NufftTask& task, const NufftTileTasks&, std::int64_t, T* out) {
      kernels_.grid(*tables_, points_.points_of(task), real.data(), imag.data(), out);
    });
  }

  /// The rows' factors: the window, the scale, and the sign that moves v = 0 to the middle of a column's transform.
  std::vector<T> row_factors(double scale) const {
    std::vector<T> factors;
    for (std::int64_t row = 0; row < npix_; ++row) {
      const double sign = (row - npix_ / 2) % 2 == 0 ? 1 : -1;
      factors.push_back(static_cast<T>(scale * sign * correction_[static_cast<std::size_t>(row)]));
    }
    return factors;
  }

  /// Pixel npix/2 - 1 - n of a sky row lies at l = n dl; n is counted modulo 2 npix along the line.
  void to_grid(const T* image, double scale) {
    const auto half = npix_ / 2;
    const auto factors = row_factors(scale);
    const auto load = [&](std::int64_t row, T* line) {
      const T* pixels = image + row * npix_;
      const T* column = column_factors_.data();
      const T factor = factors[static_cast<std::size_t>(row)];
      T* negative = line + 2 * npix_ - half;
      for (std::int64_t n = 0; n < half; ++n) line[n] = pixels[half - 1 - n] * column[half + n] * factor;
      std::fill(line + half, negative, T(0));
      for (std::int64_t n = 0; n < half; ++n) negative[n] = pixels[npix_ - 1 - n] * column[n] * factor;
    };
    rows_.to_columns(kept_, load, columns_.data(), scratch_);
    share_tasks(kept_, 4, [&](std::int64_t j, std::int64_t worker) { column_to_grid(j, worker); });
  }

  void column_to_grid(std::int64_t j, std::int64_t worker) {
    const auto half = npix_ / 2, last_v = points_.extent().last_v, last_u = points_.extent().last_u;
    Complex* column = scratch_[static_cast<std::size_t>(worker)].column.data();
    const Complex* from = columns_.data() + j * rows_.column_distance();
    std::copy_n(from + half, half, column);
    std::fill_n(column + half, npix_, Complex(0));
    std::copy_n(from, half, column + 2 * npix_ - half);
    rows_.transforms().forward_column(column);
    Complex* cells = grid_.data() + (j + guard()) * grid_distance_;
    if (last_v < npix_) {
      std::copy_n(column + npix_ - last_v, grid_rows(), cells);
    } else {
      for (std::int64_t v = -last_v; v <= last_v; ++v) cells[v + last_v] = column[wrapped(v)];
    }
    const auto mirror = [&](std::int64_t to) {
      Complex* other = grid_.data() + (to + guard()) * grid_distance_;
      for (std::int64_t i = 0; i < grid_rows(); ++i) other[i] = std::conj(cells[grid_rows() - 1 - i]);
    };
    if (j > 0 && j <= guard()) mirror(-j);
    if (j < npix_ && 2 * npix_ - j <= last_u) mirror(2 * npix_ - j);
  }

  std::int64_t wrapped(std::int64_t v) const { return (v + 5 * npix_) % (2 * npix_); }

  void from_grid(T* image, double scale, Accumulate accumulate) {
    const auto half = npix_ / 2;
    share_tasks(kept_, 4, [&](std::int64_t j, std::int64_t worker) { column_from_grid(j, worker); });
    const auto factors = row_factors(scale);
    const auto store = [&](std::int64_t row, const T* line) {
      T* pixels = image + row * npix_;
      const T* column = column_factors_.data();
      const T factor = factors[static_cast<std::size_t>(row)];
      const T* negative = line + 2 * npix_ - half;
      if (accumulate == Accumulate::add) {
        for (std::int64_t n = 0; n < half; ++n) pixels[half - 1 - n] += line[n] * column[half + n] * factor;
        for (std::int64_t n = 0; n < half; ++n) pixels[npix_ - 1 - n] += negative[n] * column[n] * factor;
      } else {
        for (std::int64_t n = 0; n < half; ++n) pixels[half - 1 - n] = line[n] * column[half + n] * factor;
        for (std::int64_t n = 0; n < half; ++n) pixels[npix_ - 1 - n] = negative[n] * column[n] * factor;
      }
    };
    rows_.from_columns(kept_, columns_.data(), store, scratch_);
  }

  /// Columns of the half plane but the first and the last stand for two of the plane.
  void column_from_grid(std::int64_t j, std::int64_t worker) {
    const auto half = npix_ / 2, last_v = points_.extent().last_v, last_u = points_.extent().last_u;
    Complex* column = scratch_[static_cast<std::size_t>(worker)].column.data();
    std::fill_n(column, 2 * npix_, Complex(0));
    const T factor = j == 0 || j == npix_ ? T(1) : T(0.5);
    const Complex* cells = residual_grid_.data() + (j + guard()) * grid_distance_;
    if (last_v < npix_) {
      for (std::int64_t i = 0; i < grid_rows(); ++i) column[npix_ - last_v + i] = factor * cells[i];
    } else {
      for (std::int64_t v = -last_v; v <= last_v; ++v) column[wrapped(v)] += factor * cells[v + last_v];
    }
    const auto add_mirrored = [&](std::int64_t from) {
      const Complex* other = residual_grid_.data() + (from + guard()) * grid_distance_;
      for (std::int64_t v = -last_v; v <= last_v; ++v) column[wrapped(v)] += factor * std::conj(other[last_v - v]);
    };
    if (j > 0 && j <= guard()) add_mirrored(-j);
    if (j < npix_ && 2 * npix_ - j <= last_u) add_mirrored(2 * npix_ - j);
    rows_.transforms().inverse_column(column);
    Complex* to = columns_.data() + j * rows_.column_distance();
    std::copy_n(column + 2 * npix_ - half, half, to);
    std::copy_n(column, half, to + half);
  }

  std::int64_t npix_;
  int width_;
  NufftTile tile_;
  NufftPoints<T> points_;
  PaddedRows<T> rows_;
  std::int64_t kept_, grid_distance_, grid_columns_;
  NufftKernels<T> kernels_;
  std::unique_ptr<NufftTables<T>> tables_;
  std::vector<double> correction_;  // 1/transform of the window at pixels n = -npix/2, ...
  std::vector<T> column_factors_;

  std::mutex mutex_;  // for all below
  std::vector<typename PaddedRows<T>::Scratch> scratch_;
  std::vector<AlignedArray<T>> tiles_;
  AlignedArray<Complex> columns_, grid_, residual_grid_;
  AlignedArray<T> buffers_;
  std::pair<PointArray<T>, PointArray<T>> values_;
  std::vector<double> chi_squared_;
};

template <typename T>
NufftPlan<T>::NufftPlan(const NufftSettings& settings, const double* u, const double* v, std::int64_t count, double max_abs_u,
                        double max_abs_v)
    : transforms_(std::make_unique<Transforms>(settings, u, v, count, max_abs_u, max_abs_v)) {}

template <typename T>
NufftPlan<T>::~NufftPlan() = default;

template <typename T>
std::int64_t NufftPlan<T>::points() const {
  return transforms_->points().count();
}

template <typename T>
void NufftPlan<T>::type2(const T* image, double scale, std::complex<T>* visibilities) const {
  transforms_->type2(image, scale, visibilities);
}

template <typename T>
void NufftPlan<T>::type1(const std::complex<T>* visibilities, double scale, T* image, Accumulate accumulate) const {
  transforms_->type1(visibilities, scale, image, accumulate);
}

template <typename T>
std::shared_ptr<const typename NufftPlan<T>::Data> NufftPlan<T>::sorted(const std::complex<double>* visibilities,
                                                                        const double* weights) const {
  const auto& points = transforms_->points();
  auto data = std::make_shared<Data>(points.count());
  at::parallel_for(0, points.count(), 16384, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto source = points.source(i);
      const auto value = visibilities[source];
      data->real.data()[i] = static_cast<T>(value.real());
      data->imag.data()[i] = static_cast<T>(points.mirrored(i) ? -value.imag() : value.imag());
      data->weight.data()[i] = static_cast<T>(weights[source]);
    }
  });
  return data;
}

template <typename T>
double NufftPlan<T>::fused(const T* image, double scale, const Data& data, T* gradient, Accumulate accumulate) const {
  return transforms_->fused(image, scale, data, gradient, accumulate);
}

template <typename T>
void NufftPlan<T>::dirty_and_beam(const Data& data, double scale, T* dirty, double beam_scale, T* beam) const {
  transforms_->dirty_and_beam(data, scale, dirty, beam_scale, beam);
}

template <typename T>
std::int64_t NufftPlan<T>::memory_bytes() const {
  return transforms_->memory_bytes();
}

template class NufftPlan<float>;
template class NufftPlan<double>;

}  // namespace mpol::ops
