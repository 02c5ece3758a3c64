#include <mpol_cpp/ops/nufft/nufft_plan.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include <mpol_cpp/ops/nufft/nufft_grid.h>
#include <mpol_cpp/ops/memory/point_array.h>
#include <mpol_cpp/ops/nufft/nufft_points.h>
#include <mpol_cpp/ops/nufft/nufft_window.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {

template <typename T>
struct NufftPlan<T>::Data {
  explicit Data(std::int64_t count) : real(count), imag(count), weight(count) {}
  PointArray<T> real, imag, weight;
};

template <typename T>
class NufftPlan<T>::Transforms {
 public:
  Transforms(const NufftSettings& settings, const NufftCoordinateSource& coordinates, std::int64_t count, double max_abs_u,
             double max_abs_v)
      : width_(nufft_width<T>(settings.tolerance)),
        points_(coordinates, count, 2.0 * static_cast<double>(NufftGrid<T>::padded(settings.npix)) * settings.pixel, max_abs_u,
                max_abs_v, width_),
        grid_(settings.npix, width_, points_.extent()),
        kernels_(nufft_kernels<T>(selected_isa(), width_)),
        tables_(std::make_unique<NufftTables<T>>(NufftWindow(width_).tables<T>())) {
    for (const auto& own : points_.tiles()) {
      colored_[index(own.u % 2 * 2 + own.v % 2)].push_back(&own);
      if (own.end_task - own.first_task == 1) continue;
      for (auto i = own.first_task; i < own.end_task; ++i) buffered_.emplace_back(&points_.tasks()[index(i)], &own);
    }
    const auto is_large = [&](const NufftTileTasks* tile) {
      const auto points = points_.points_of(points_.tasks()[index(tile->first_task)]);
      return points.last - points.first > NufftPoints<T>::task_points / 16;
    };
    for (auto& color : colored_) std::stable_partition(color.begin(), color.end(), is_large);
  }

  const NufftPoints<T>& points() const { return points_; }

  void type2(std::span<const T* const> images, double scale, std::span<Complex* const> visibilities) {
    each_group(images.size(), [&](std::size_t first, int count) {
      for (int n = 0; n < count; ++n) grid_.from_image(images[first + index(n)], scale, grid_of(cells_, n));
      each_task([&](const NufftTask& task, const NufftTileTasks& tile, std::int64_t worker) {
        const auto points = points_.points_of(task);
        auto shares = shares_in(worker);
        for (int n = 0; n < count; ++n) copy_tile(cells_[index(n)].data(), tile, n, worker);
        kernels_.degrid(*tables_, points, shares.data(), count);
        for (int n = 0; n < count; ++n) scatter(points, shares[index(n)], visibilities[first + index(n)]);
      });
    });
  }

  void type1(std::span<const Complex* const> visibilities, double scale, std::span<T* const> images, Accumulate accumulate) {
    each_group(images.size(), [&](std::size_t first, int count) {
      spread(count, cleared_sums(count), [&](const NufftTask& task, const NufftTileTasks&, std::int64_t, NufftImage<T>* shares) {
        const auto points = points_.points_of(task);
        for (int n = 0; n < count; ++n) gather(points, visibilities[first + index(n)], shares[n]);
        kernels_.grid(*tables_, points, shares, count);
      });
      for (int n = 0; n < count; ++n) grid_.to_image(sums_[index(n)].data(), scale, images[first + index(n)], accumulate);
    });
  }

  Cells empty_cells() const { return Cells(grid_.size()); }

  void add_to(std::span<const Cells* const> cells, std::span<const Complex* const> visibilities) {
    const std::lock_guard lock(mutex_);
    for (std::size_t first = 0; first < cells.size(); first += nufft_max_images) {
      const auto count = static_cast<int>(std::min<std::size_t>(nufft_max_images, cells.size() - first));
      prepare(count);
      Grids grids = {};
      for (int n = 0; n < count; ++n) grids[index(n)] = cells[first + index(n)]->data();
      spread(count, grids, [&](const NufftTask& task, const NufftTileTasks&, std::int64_t, NufftImage<T>* shares) {
        const auto points = points_.points_of(task);
        for (int n = 0; n < count; ++n) gather(points, visibilities[first + index(n)], shares[n]);
        kernels_.grid(*tables_, points, shares, count);
      });
    }
  }

  void to_cells(const T* image, double scale, const Cells& cells) {
    const std::lock_guard lock(mutex_);
    grid_.from_image(image, scale, cells.data());
  }

  void interpolate(const Cells& cells, Complex* visibilities) {
    const std::lock_guard lock(mutex_);
    prepare(1);
    each_task([&](const NufftTask& task, const NufftTileTasks& tile, std::int64_t worker) {
      const auto points = points_.points_of(task);
      auto shares = shares_in(worker);
      copy_tile(cells.data(), tile, 0, worker);
      kernels_.degrid(*tables_, points, shares.data(), 1);
      scatter(points, shares[0], visibilities);
    });
  }

  void to_image(const Cells& cells, double scale, T* image) {
    const std::lock_guard lock(mutex_);
    grid_.to_image(cells.data(), scale, image, Accumulate::overwrite);
  }

  std::int64_t cells_to_image_bytes() const {
    return grid_.size() * static_cast<std::int64_t>(sizeof(Complex)) + grid_.memory_bytes();
  }

  std::vector<double> fused(std::span<const Comparison> comparisons, double scale, Accumulate accumulate) {
    const auto& tasks = points_.tasks();
    std::vector<double> values(comparisons.size()), parts(tasks.size() * nufft_max_images);
    each_group(comparisons.size(), [&](std::size_t first, int count) {
      for (int n = 0; n < count; ++n) grid_.from_image(comparisons[first + index(n)].image, scale, grid_of(cells_, n));
      spread(count, cleared_sums(count),
             [&](const NufftTask& task, const NufftTileTasks& tile, std::int64_t worker, NufftImage<T>* shares) {
               const auto points = points_.points_of(task);
               for (int n = 0; n < count; ++n) {
                 const auto& data = *comparisons[first + index(n)].data;
                 copy_tile(cells_[index(n)].data(), tile, n, worker);
                 shares[n].real = data.real.data() + points.first;
                 shares[n].imag = data.imag.data() + points.first;
                 shares[n].weight = data.weight.data() + points.first;
               }
               kernels_.fused(*tables_, points, shares, count);
               for (int n = 0; n < count; ++n)
                 parts[index(&task - tasks.data()) * nufft_max_images + index(n)] = shares[n].chi_squared;
             });
      for (int n = 0; n < count; ++n) {
        grid_.to_image(sums_[index(n)].data(), 2 * scale, comparisons[first + index(n)].gradient, accumulate);
        for (std::size_t i = 0; i < tasks.size(); ++i) values[first + index(n)] += parts[i * nufft_max_images + index(n)];
      }
    });
    return values;
  }

  /// Spreads w d and w onto the two grids of sums, which are emptied before unless they go on.
  void spread_data_and_weights(const std::complex<double>* visibilities, const double* weights) {
    const std::lock_guard lock(mutex_);
    prepare(2);
    spread(2, cleared_sums(2), [&](const NufftTask& task, const NufftTileTasks&, std::int64_t, NufftImage<T>* shares) {
      const auto points = points_.points_of(task);
      for (auto i = points.first; i < points.last; ++i) {
        points_.fetch_ahead(i, visibilities);
        points_.fetch_ahead(i, weights);
        const auto source = points_.source(i), own = i - points.first;
        const auto weighted = weights[source] * visibilities[source];
        shares[0].model_real[own] = static_cast<T>(weighted.real());
        shares[0].model_imag[own] = static_cast<T>(points_.mirrored(i) ? -weighted.imag() : weighted.imag());
        shares[1].model_real[own] = static_cast<T>(weights[source]);
      }
      std::fill_n(shares[1].model_imag, points.last - points.first, T(0));
      kernels_.grid(*tables_, points, shares, 2);
    });
  }

  void dirty_and_beam_of_sums(double scale, T* dirty, double beam_scale, T* beam) {
    const std::lock_guard lock(mutex_);
    grid_.to_image(sums_[0].data(), scale, dirty, Accumulate::overwrite);
    grid_.to_image(sums_[1].data(), beam_scale, beam, Accumulate::overwrite);
  }

  /// Goes on with the sums of other points on the same grid, which has none then.
  void go_on_with(Transforms& other) {
    sums_ = std::move(other.sums_);
    other.sums_.clear();
    goes_on_ = true;
  }

  std::int64_t memory_bytes() const {
    const auto images = static_cast<std::int64_t>(std::max(1, prepared_));
    const auto grids = static_cast<std::int64_t>(std::max<std::size_t>(2, cells_.size() + sums_.size()));
    const auto of_worker = 2 * tile().size() + 2 * values_size;
    return points_.memory_bytes() + grid_.memory_bytes() + grids * grid_.size() * static_cast<std::int64_t>(sizeof(Complex)) +
           images * (points_.buffers() * tile().size() + at::get_num_threads() * of_worker) *
               static_cast<std::int64_t>(sizeof(T));
  }

 private:
  /// Grids of the images of a group take no more than this together; one image alone may.
  static constexpr std::int64_t most_grid_bytes = std::int64_t{256} << 20;
  static constexpr std::int64_t values_size = NufftPoints<T>::task_points + PointArray<T>::room;

  /// What one worker has for one image of a group.
  struct Workplace {
    AlignedArray<T> cells, sums, real, imag;
  };

  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  const NufftTile& tile() const { return grid_.tile(); }

  /// Images that are taken together.
  int group_size() const {
    const auto bytes = 2 * grid_.size() * static_cast<std::int64_t>(sizeof(Complex));
    return static_cast<int>(std::clamp<std::int64_t>(most_grid_bytes / bytes, 1, nufft_max_images));
  }

  template <typename Body>
  void each_group(std::size_t images, const Body& body) {
    const std::lock_guard lock(mutex_);
    const auto most = static_cast<std::size_t>(group_size());
    for (std::size_t first = 0; first < images; first += most) {
      const auto count = static_cast<int>(std::min(most, images - first));
      prepare(count);
      body(first, count);
    }
  }

  void prepare(int images) {
    const auto threads = index(at::get_num_threads());
    if (images <= prepared_ && workplaces_.size() >= threads) return;
    prepared_ = std::max(images, prepared_);
    while (buffers_.size() < index(prepared_)) buffers_.emplace_back(points_.buffers() * tile().size() + 1);
    workplaces_.resize(std::max(threads, workplaces_.size()));
    for (auto& own : workplaces_) {
      while (own.size() < index(prepared_)) {
        own.push_back({AlignedArray<T>(tile().size()), AlignedArray<T>(tile().size()), AlignedArray<T>(values_size),
                       AlignedArray<T>(values_size)});
      }
    }
  }

  /// Makes grids when they are first asked for: type 1 alone, or type 2 alone, needs one kind only.
  Complex* grid_of(std::vector<AlignedArray<Complex>>& grids, int image) const {
    while (grids.size() <= index(image)) grids.emplace_back(grid_.size());
    return grids[index(image)].data();
  }

  using Shares = std::array<NufftImage<T>, nufft_max_images>;
  Shares shares_in(std::int64_t worker) const {
    Shares shares;
    for (int n = 0; n < prepared_; ++n) {
      const auto& own = workplaces_[index(worker)][index(n)];
      shares[index(n)] = {own.cells.data(), own.sums.data(), own.real.data(), own.imag.data(),
                          nullptr,          own.real.data(), own.imag.data(), 0};
    }
    return shares;
  }

  void copy_tile(Complex* cells, const NufftTileTasks& from_tile, int image, std::int64_t worker) const {
    const T* from = grid_.corner(cells, from_tile);
    T* to = workplaces_[index(worker)][index(image)].cells.data();
    for (int column = 0; column < tile().columns; ++column) {
      std::memcpy(to + column * tile().distance, from + column * 2 * grid_.distance(), index(tile().distance) * sizeof(T));
    }
  }

  void add_tile(const T* from, const NufftTileTasks& to_tile, Complex* cells) const {
    kernels_.add_tile(from, grid_.corner(cells, to_tile), 2 * grid_.distance());
  }

  void scatter(const NufftTilePoints<T>& points, const NufftImage<T>& share, Complex* visibilities) const {
    for (auto i = points.first; i < points.last; ++i) {
      points_.fetch_ahead(i, visibilities);
      const auto imag = share.model_imag[i - points.first];
      visibilities[points_.source(i)] = {share.model_real[i - points.first], points_.mirrored(i) ? -imag : imag};
    }
  }

  void gather(const NufftTilePoints<T>& points, const Complex* visibilities, const NufftImage<T>& share) const {
    for (auto i = points.first; i < points.last; ++i) {
      points_.fetch_ahead(i, visibilities);
      const auto value = visibilities[points_.source(i)];
      share.model_real[i - points.first] = value.real();
      share.model_imag[i - points.first] = points_.mirrored(i) ? -value.imag() : value.imag();
    }
  }

  template <typename Body>
  void each_task(const Body& body) {
    const auto& tiles = points_.tiles();
    share_tasks(static_cast<std::int64_t>(tiles.size()), 1, [&](std::int64_t t, std::int64_t worker) {
      const auto& own = tiles[index(t)];
      for (auto i = own.first_task; i < own.end_task; ++i) body(points_.tasks()[index(i)], own, worker);
    });
  }

  using Grids = std::array<Complex*, nufft_max_images>;

  /// The plan's own grids for the sums of so many images, zero unless they go on with those of other points.
  Grids cleared_sums(int count) {
    Grids grids = {};
    for (int n = 0; n < count; ++n) grids[index(n)] = grid_of(sums_, n);
    if (goes_on_) return grids;
    share_tasks(grid_.columns(), 8, [&](std::int64_t column, std::int64_t) {
      for (int n = 0; n < count; ++n) std::fill_n(grids[index(n)] + column * grid_.distance(), grid_.distance(), Complex(0));
    });
    return grids;
  }

  /// Tasks add to tiles of their own; tiles are added to the grids in four passes, neighbours never at the same time.
  template <typename Body>
  void spread(int count, const Grids& grids, const Body& body) {
    const auto& tasks = points_.tasks();
    const auto run_task = [&](const NufftTask& task, const NufftTileTasks& own, std::int64_t worker) {
      auto shares = shares_in(worker);
      for (int n = 0; n < count; ++n) {
        if (task.buffer >= 0) shares[index(n)].sums = buffers_[index(n)].data() + task.buffer * tile().size();
        std::fill_n(shares[index(n)].sums, tile().size(), T(0));
      }
      body(task, own, worker, shares.data());
      return shares;
    };
    share_tasks(static_cast<std::int64_t>(buffered_.size()), 1, [&](std::int64_t i, std::int64_t worker) {
      run_task(*buffered_[index(i)].first, *buffered_[index(i)].second, worker);
    });
    for (const auto& color : colored_) {
      share_tasks(static_cast<std::int64_t>(color.size()), 1, [&](std::int64_t t, std::int64_t worker) {
        const auto& own = *color[index(t)];
        const auto& first = tasks[index(own.first_task)];
        if (first.buffer < 0) {
          const auto shares = run_task(first, own, worker);
          for (int n = 0; n < count; ++n) add_tile(shares[index(n)].sums, own, grids[index(n)]);
          return;
        }
        for (int n = 0; n < count; ++n) {
          for (auto i = own.first_task; i < own.end_task; ++i) {
            add_tile(buffers_[index(n)].data() + tasks[index(i)].buffer * tile().size(), own, grids[index(n)]);
          }
        }
      });
    }
  }

  int width_;
  NufftPoints<T> points_;
  NufftGrid<T> grid_;
  NufftKernels<T> kernels_;
  std::unique_ptr<NufftTables<T>> tables_;
  std::vector<std::pair<const NufftTask*, const NufftTileTasks*>> buffered_;  // tasks of tiles that have several
  std::array<std::vector<const NufftTileTasks*>, 4>
      colored_;  // a list for each color, without neighbours, the largest first for balance

  std::mutex mutex_;      // for the grid and all below
  bool goes_on_ = false;  // with sums of other points
  int prepared_ = 0;      // images that there is room for
  std::vector<AlignedArray<Complex>> cells_, sums_;
  std::vector<AlignedArray<T>> buffers_;
  std::vector<std::vector<Workplace>> workplaces_;
};

template <typename T>
NufftPlan<T>::NufftPlan(const NufftSettings& settings, const double* u, const double* v, std::int64_t count, double max_abs_u,
                        double max_abs_v)
    : NufftPlan(
          settings,
          [u, v](std::int64_t begin, std::int64_t) {
            return NufftCoordinates{u + begin, v + begin, nullptr};
          },
          count, max_abs_u, max_abs_v) {}

template <typename T>
NufftPlan<T>::NufftPlan(const NufftSettings& settings, const NufftCoordinateSource& coordinates, std::int64_t count,
                        double max_abs_u, double max_abs_v)
    : transforms_(std::make_unique<Transforms>(settings, coordinates, count, max_abs_u, max_abs_v)) {}

template <typename T>
NufftPlan<T>::~NufftPlan() = default;

template <typename T>
std::int64_t NufftPlan<T>::points() const {
  return transforms_->points().count();
}

template <typename T>
void NufftPlan<T>::type2(std::span<const T* const> images, double scale, std::span<Complex* const> visibilities) const {
  transforms_->type2(images, scale, visibilities);
}

template <typename T>
void NufftPlan<T>::type1(std::span<const Complex* const> visibilities, double scale, std::span<T* const> images,
                         Accumulate accumulate) const {
  transforms_->type1(visibilities, scale, images, accumulate);
}

template <typename T>
typename NufftPlan<T>::Cells NufftPlan<T>::empty_cells() const {
  return transforms_->empty_cells();
}

template <typename T>
void NufftPlan<T>::add_to(std::span<const Cells* const> cells, std::span<const Complex* const> visibilities) const {
  transforms_->add_to(cells, visibilities);
}

template <typename T>
void NufftPlan<T>::to_cells(const T* image, double scale, const Cells& cells) const {
  transforms_->to_cells(image, scale, cells);
}

template <typename T>
void NufftPlan<T>::interpolate(const Cells& cells, Complex* visibilities) const {
  transforms_->interpolate(cells, visibilities);
}

template <typename T>
void NufftPlan<T>::to_image(const Cells& cells, double scale, T* image) const {
  transforms_->to_image(cells, scale, image);
}

template <typename T>
std::int64_t NufftPlan<T>::cells_to_image_bytes() const {
  return transforms_->cells_to_image_bytes();
}

template <typename T>
template <typename Real>
std::shared_ptr<const typename NufftPlan<T>::Data> NufftPlan<T>::sorted(const std::complex<Real>* visibilities,
                                                                        const Real* weights) const {
  const auto& points = transforms_->points();
  auto data = std::make_shared<Data>(points.count());
  share_ranges(points.count(), 16384, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      points.fetch_ahead(i, visibilities);
      points.fetch_ahead(i, weights);
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
std::vector<double> NufftPlan<T>::fused(std::span<const Comparison> comparisons, double scale, Accumulate accumulate) const {
  return transforms_->fused(comparisons, scale, accumulate);
}

template <typename T>
std::int64_t NufftPlan<T>::memory_bytes() const {
  return transforms_->memory_bytes();
}

template <typename T>
NufftDirtySums<T>::NufftDirtySums(const NufftSettings& settings, double max_abs_u, double max_abs_v)
    : settings_(settings), max_abs_u_(max_abs_u), max_abs_v_(max_abs_v) {}

template <typename T>
NufftDirtySums<T>::~NufftDirtySums() = default;

template <typename T>
void NufftDirtySums<T>::add(const double* u, const double* v, std::int64_t count, const std::complex<double>* visibilities,
                            const double* weights) {
  auto plan = std::make_unique<NufftPlan<T>>(settings_, u, v, count, max_abs_u_, max_abs_v_);
  if (plan_) plan->transforms_->go_on_with(*plan_->transforms_);
  plan_ = std::move(plan);
  plan_->transforms_->spread_data_and_weights(visibilities, weights);
}

template <typename T>
void NufftDirtySums<T>::images(double scale, T* dirty, double beam_scale, T* beam) {
  plan_->transforms_->dirty_and_beam_of_sums(scale, dirty, beam_scale, beam);
  plan_.reset();
}

#define MPOL_SORTED(T, Real) \
  template std::shared_ptr<const typename NufftPlan<T>::Data> NufftPlan<T>::sorted(const std::complex<Real>*, const Real*) const;
MPOL_SORTED(float, float)
MPOL_SORTED(float, double)
MPOL_SORTED(double, float)
MPOL_SORTED(double, double)
#undef MPOL_SORTED

template class NufftPlan<float>;
template class NufftPlan<double>;
template class NufftDirtySums<float>;
template class NufftDirtySums<double>;

}  // namespace mpol::ops
