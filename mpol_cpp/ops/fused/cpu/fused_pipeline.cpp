#include <mpol_cpp/ops/fused/cpu/fused_pipeline.h>

#include <algorithm>
#include <span>
#include <utility>

#include <ATen/ops/from_blob.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused/cpu/fused_passes.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/regularizers/regularizers.h>

namespace mpol::ops {
template <typename T>
class FusedPipeline<T>::Runs {
 public:
  Runs(const FusedSettings& settings, std::vector<ColumnCells<T>> cells, ImageLikelihood likelihood)
      : problems_(settings.problems),
        images_per_problem_(settings.nchan),
        likelihood_(std::move(likelihood)),
        passes_(settings, std::move(cells), likelihood_ ? detail::GradientOf::images : detail::GradientOf::cells),
        panel_sums_(static_cast<std::size_t>(passes_.panels())),
        row_sums_(static_cast<std::size_t>(passes_.images() * passes_.geometry().blocks)),
        states_(static_cast<std::size_t>(problems_), State::running),
        values_(static_cast<std::size_t>(problems_)) {}

  /// @param updates  one, or one for each problem
  const std::vector<FusedValues>& run(FusedUpdate kind, const UpdateRow<T>& pixels, std::span<const UpdateSettings> updates) {
    prepare_workers();
    const auto map = [&](std::int64_t block, const detail::RowScratch<T>& scratch) { map_block(pixels, block, scratch); };
    const auto weigh = [&](std::int64_t panel, const detail::RowScratch<T>& scratch) {
      panel_sums_[static_cast<std::size_t>(panel)] = passes_.weigh_panel(panel, scratch);
    };
    const auto square = [&](std::int64_t rows) {
      passes_.square_rows(rows / passes_.geometry().blocks, rows % passes_.geometry().blocks);
    };
    const auto finish = [&](std::int64_t block, const detail::RowScratch<T>& scratch) {
      const auto problem = static_cast<std::size_t>(block / passes_.geometry().blocks / images_per_problem_);
      finish_block(kind, pixels, updates[updates.size() == 1 ? 0 : problem], block, scratch);
    };
    share(static_cast<std::int64_t>(whole_.size()), [&](std::int64_t i, const detail::RowScratch<T>& scratch) {
      const auto& part = whole_[static_cast<std::size_t>(i)];
      for (auto block = part.first_block; block < part.end_block; ++block) map(block, scratch);
      for (auto rows = part.first_squares; rows < part.end_squares; ++rows) square(rows);
      for (auto panel = part.first_panel; panel < part.end_panel; ++panel) weigh(panel, scratch);
      for (auto block = part.first_block; block < part.end_block; ++block) finish(block, scratch);
    });
    share(blocks_, map);
    share(squares_, [&](std::int64_t rows, const detail::RowScratch<T>&) { square(rows); });
    if (likelihood_) weigh_images();
    share(panels_, weigh);
    share(blocks_, finish);
    for (std::int64_t problem = 0; problem < problems_; ++problem) {
      const auto i = static_cast<std::size_t>(problem);
      if (states_[i] != State::stopped) values_[i] = sum_up(problem);
      if (states_[i] == State::stopping) set_state(problem, State::stopped);
    }
    return values_;
  }

  void stop(std::int64_t problem) {
    check_problem(problem);
    if (states_[static_cast<std::size_t>(problem)] == State::running) set_state(problem, State::stopping);
  }
  void resume(std::int64_t problem) {
    check_problem(problem);
    set_state(problem, State::running);
  }

  std::size_t problems() const { return values_.size(); }
  Tensor image() const { return image_view().clone(at::MemoryFormat::Contiguous); }

  std::int64_t memory_bytes() const {
    auto bytes = passes_.bytes() + packed_images_.bytes();
    for (const auto& scratch : scratch_) bytes += scratch.bytes();
    return static_cast<std::int64_t>(bytes);
  }

 private:
  enum class State { running, stopping, stopped };

  void check_problem(std::int64_t problem) const {
    if (problem >= 0 && problem < problems_) return;
    throw ValueError(fmt::format("problem {} is to stop or to go on; there are 0 to {}", problem, problems_ - 1));
  }
  void set_state(std::int64_t problem, State state) {
    states_[static_cast<std::size_t>(problem)] = state;
    listed_for_ = 0;
  }

  /// Images that need nothing of others: one, or all channels of a problem where neighbours are compared.
  struct Part {
    std::int64_t first_block, end_block, first_panel, end_panel;
    std::int64_t first_squares, end_squares;  // blocks of rows of all channels together
  };

  void prepare_workers() {
    workers_ = at::get_num_threads();
    while (static_cast<std::int64_t>(scratch_.size()) < workers_) scratch_.push_back(passes_.scratch());
    if (listed_for_ != workers_) list_work();
  }

  /// The work of the problems that go on. As many parts as can be dealt out evenly are taken through all passes by one worker
  /// each, in its cache and without waiting; all workers go through the passes over the rest together.
  void list_work() {
    std::vector<Part> parts;
    const auto blocks = passes_.geometry().blocks;
    for (std::int64_t image = 0; image < passes_.images();) {
      using regularizers::Driver;
      const auto& terms = passes_.problem_of(image).terms;
      const bool whole_spectra = detail::in_use<Driver::spectra>(terms);
      const auto images = whole_spectra || detail::in_use<Driver::channels>(terms) ? images_per_problem_ : 1,
                 end = image + images;
      const auto problem = image / images_per_problem_;
      if (states_[static_cast<std::size_t>(problem)] != State::stopped) {
        parts.push_back({image * blocks, end * blocks, passes_.first_panel(image), passes_.first_panel(end), problem * blocks,
                         (problem + (whole_spectra ? 1 : 0)) * blocks});
      }
      image = end;
    }
    const auto count = static_cast<std::int64_t>(parts.size());
    const auto whole = parts.begin() + (likelihood_ ? 0 : count - count % workers_);
    whole_.assign(parts.begin(), whole);
    blocks_.clear(), squares_.clear(), panels_.clear();
    for (auto part = whole; part != parts.end(); ++part) {
      for (auto block = part->first_block; block < part->end_block; ++block) blocks_.push_back(block);
      for (auto rows = part->first_squares; rows < part->end_squares; ++rows) squares_.push_back(rows);
      for (auto panel = part->first_panel; panel < part->end_panel; ++panel) panels_.push_back(panel);
    }
    listed_for_ = workers_;
  }

  void map_block(const UpdateRow<T>& pixels, std::int64_t block, const detail::RowScratch<T>& scratch) {
    const auto blocks = passes_.geometry().blocks;
    passes_.map_rows(pixels.base, block / blocks, block % blocks, scratch);
  }

  void finish_block(FusedUpdate kind, const UpdateRow<T>& pixels, const UpdateSettings& update, std::int64_t block,
                    const detail::RowScratch<T>& scratch) {
    const auto blocks = passes_.geometry().blocks;
    auto& sums = row_sums_[static_cast<std::size_t>(block)];
    sums = {};
    if (kind == FusedUpdate::none || states_[static_cast<std::size_t>(block / blocks / images_per_problem_)] == State::running) {
      return passes_.finish_rows(kind, pixels, update, block / blocks, block % blocks, scratch, sums);
    }
    // A problem that stands still gets its values by a step of length 0.
    passes_.finish_rows(FusedUpdate::sgd, {pixels.base, nullptr, nullptr, nullptr}, {}, block / blocks, block % blocks, scratch,
                        sums);
  }

  template <typename Task>
  void share(const std::vector<std::int64_t>& tasks, const Task& task) {
    share(static_cast<std::int64_t>(tasks.size()),
          [&](std::int64_t i, const detail::RowScratch<T>& scratch) { task(tasks[static_cast<std::size_t>(i)], scratch); });
  }

  /// Each worker begins with a run of neighbouring tasks, the same in each pass and step, which its cache holds.
  template <typename Task>
  void share(std::int64_t count, const Task& task) {
    const auto with_scratch = [&](std::int64_t i, std::int64_t worker) { task(i, scratch_[static_cast<std::size_t>(worker)]); };
    share_tasks(count, 1, with_scratch, WorkerPool::Order::near);
  }

  /// The images where they lie.
  Tensor image_view() const {
    const auto npix = passes_.geometry().npix, distance = passes_.geometry().row_distance;
    const auto options = torch::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value);
    return at::from_blob(passes_.images_data(), {problems_, images_per_problem_, npix, npix},
                         {images_per_problem_ * npix * distance, npix * distance, distance, 1}, options);
  }
  /// Rows side by side.
  Tensor packed_view(T* data) const {
    const auto npix = passes_.geometry().npix;
    const auto options = torch::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value);
    return at::from_blob(data, {problems_, images_per_problem_, npix, npix}, options);
  }

  /// The copy is made here and not by the likelihood, whose threads LibTorch's would be.
  void weigh_images() {
    const auto npix = passes_.geometry().npix, rows = passes_.images() * npix;
    if (packed_images_.size() == 0) packed_images_ = AlignedArray<T>(rows * npix);
    const auto pack = [&](std::int64_t row, std::int64_t) {
      std::copy_n(std::as_const(passes_).image_row(row / npix, row % npix), npix, packed_images_.data() + row * npix);
    };
    share_tasks(rows, 32, pack, WorkerPool::Order::near);
    auto gradient = packed_view(passes_.gradients_data());
    const auto values = likelihood_(packed_view(packed_images_.data()), gradient).to(torch::kCPU, torch::kFloat64).contiguous();
    if (values.numel() != problems_) {
      throw ShapeError(fmt::format("the likelihood gave {} values for {} problems: sum over the last three dimensions only",
                                   values.numel(), problems_));
    }
    const auto* value = values.template const_data_ptr<double>();
    chi_squared_of_images_.assign(value, value + problems_);
  }

  FusedValues sum_up(std::int64_t problem) const {
    FusedValues values;
    const auto pieces = images_per_problem_ * passes_.geometry().blocks;
    const auto image = problem * images_per_problem_, end = image + images_per_problem_;
    if (likelihood_) values.chi_squared = chi_squared_of_images_[static_cast<std::size_t>(problem)];
    for (auto i = image; i < end; ++i) values.chi_squared += passes_.constant(i);
    double power = 0;
    for (auto i = passes_.first_panel(image); i < passes_.first_panel(end); ++i) {
      values.chi_squared += panel_sums_[static_cast<std::size_t>(i)].chi_squared;
      power += panel_sums_[static_cast<std::size_t>(i)].power;
    }
    for (auto i = problem * pieces; i < (problem + 1) * pieces; ++i) {
      const auto& sums = row_sums_[static_cast<std::size_t>(i)];
      for (int kind = 0; kind < regularizer_count; ++kind) values.terms[kind] += sums.terms[kind].total();
      values.parameters += sums.parameters.total();
    }
    regularizers::for_each(regularizers::KindsOf<regularizers::Driver::half_plane>{},
                           [&](TermKind kind) { values.terms[static_cast<int>(kind)] = power; });
    for (const auto kind : all_regularizers()) {
      if (const auto divisor = regularizer_of(kind).scaled_by) {
        values.terms[static_cast<int>(kind)] /= passes_.problem_of(image).terms.settings(kind)[*divisor];
      }
    }
    return values;
  }

  std::int64_t problems_, images_per_problem_;
  ImageLikelihood likelihood_;  // empty when the cells are the likelihood
  std::vector<double> chi_squared_of_images_;
  AlignedArray<T> packed_images_;  // likewise
  detail::FusedPasses<T> passes_;
  std::int64_t workers_ = 0, listed_for_ = 0;
  std::vector<detail::RowScratch<T>> scratch_;
  std::vector<detail::PanelSums> panel_sums_;
  std::vector<RowSums> row_sums_;
  std::vector<State> states_;
  std::vector<Part> whole_;
  std::vector<std::int64_t> blocks_, squares_, panels_;
  std::vector<FusedValues> values_;
};

template <typename T>
FusedPipeline<T>::FusedPipeline(const FusedSettings& settings, std::vector<ColumnCells<T>> cells) {
  settings.check_counts();
  const auto count = static_cast<std::int64_t>(cells.size());
  if (count != settings.nchan && count != settings.nchan * settings.problems) {
    throw ValueError(
        fmt::format("{} problems of {} channels with cells of {}: give cells for every channel, or for every channel "
                    "of every problem",
                    settings.problems, settings.nchan, count));
  }
  runs_ = std::make_unique<Runs>(settings, std::move(cells), nullptr);
}

template <typename T>
FusedPipeline<T>::FusedPipeline(const FusedSettings& settings, ImageLikelihood likelihood) {
  settings.check_counts();
  if (!likelihood) throw ValueError("the likelihood of the images is empty");
  ColumnCells<T> no_cells;
  no_cells.begin = {0};
  runs_ = std::make_unique<Runs>(settings, std::vector<ColumnCells<T>>(static_cast<std::size_t>(settings.nchan), no_cells),
                                 std::move(likelihood));
}

template <typename T>
FusedPipeline<T>::~FusedPipeline() = default;

template <typename T>
const std::vector<FusedValues>& FusedPipeline<T>::run(FusedUpdate kind, const UpdateRow<T>& pixels,
                                                      const UpdateSettings& update) {
  return runs_->run(kind, pixels, {&update, 1});
}

template <typename T>
const std::vector<FusedValues>& FusedPipeline<T>::run_each(FusedUpdate kind, const UpdateRow<T>& pixels,
                                                           const std::vector<UpdateSettings>& update) {
  if (update.size() != runs_->problems()) {
    throw ValueError(fmt::format("{} updates for {} problems: give one for each", update.size(), runs_->problems()));
  }
  return runs_->run(kind, pixels, update);
}

template <typename T>
void FusedPipeline<T>::stop(std::int64_t problem) {
  runs_->stop(problem);
}

template <typename T>
void FusedPipeline<T>::resume(std::int64_t problem) {
  runs_->resume(problem);
}

template <typename T>
Tensor FusedPipeline<T>::image() const {
  return runs_->image();
}

template <typename T>
std::int64_t FusedPipeline<T>::memory_bytes() const {
  return runs_->memory_bytes();
}

template class FusedPipeline<float>;
template class FusedPipeline<double>;

}  // namespace mpol::ops
