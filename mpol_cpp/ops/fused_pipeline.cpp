#include <mpol_cpp/ops/fused_pipeline.h>

#include <span>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused_passes.h>

namespace mpol::ops {
namespace {

void check_counts(const FusedSettings& settings) {
  if (settings.nchan < 1 || settings.problems < 1) {
    throw ValueError(
        fmt::format("{} problems of {} channels: at least one of each is needed", settings.problems, settings.nchan));
  }
  if (!settings.own.empty() && static_cast<std::int64_t>(settings.own.size()) != settings.problems) {
    throw ValueError(
        fmt::format("{} problems, but {} have weights of their own: give one for each", settings.problems, settings.own.size()));
  }
}

}  // namespace

template <typename T>
class FusedPipeline<T>::Runs {
 public:
  Runs(const FusedSettings& settings, std::vector<ColumnCells<T>> cells, ImageLikelihood likelihood)
      : problems_(settings.problems),
        images_per_problem_(settings.nchan),
        likelihood_(std::move(likelihood)),
        passes_(settings, std::move(cells), likelihood_ ? detail::GradientOf::images : detail::GradientOf::cells),
        column_sums_(static_cast<std::size_t>(passes_.columns())),
        row_sums_(static_cast<std::size_t>(passes_.images() * passes_.geometry().blocks)),
        stopped_(static_cast<std::size_t>(problems_)),
        values_(static_cast<std::size_t>(problems_)) {
    list_work();
  }

  /// @param updates  one, or one for each problem
  const std::vector<FusedValues>& run(FusedUpdate kind, const UpdateRow<T>& pixels, std::span<const UpdateSettings> updates) {
    const auto blocks = passes_.geometry().blocks;
    workers_ = at::get_num_threads();
    while (static_cast<std::int64_t>(scratch_.size()) < workers_) scratch_.push_back(passes_.scratch());
    share(blocks_, [&](std::int64_t block, const detail::RowScratch<T>& scratch) {
      passes_.map_rows(pixels.base, block / blocks, block % blocks, scratch);
    });
    if (likelihood_) weigh_images();
    share(columns_, [&](std::int64_t column, const detail::RowScratch<T>& scratch) {
      column_sums_[static_cast<std::size_t>(column)] = passes_.weigh_column(column, scratch);
    });
    share(blocks_, [&](std::int64_t block, const detail::RowScratch<T>& scratch) {
      auto& sums = row_sums_[static_cast<std::size_t>(block)];
      sums = {};
      const auto image = block / blocks;
      const auto& update = updates[updates.size() == 1 ? 0 : static_cast<std::size_t>(image / images_per_problem_)];
      passes_.finish_rows(kind, pixels, update, image, block % blocks, scratch, sums);
    });
    for (std::int64_t problem = 0; problem < problems_; ++problem) {
      const auto i = static_cast<std::size_t>(problem);
      if (!stopped_[i]) values_[i] = sum_up(problem);
    }
    return values_;
  }

  void stop(std::int64_t problem) {
    if (problem < 0 || problem >= problems_) {
      throw ValueError(fmt::format("problem {} is to stop; there are 0 to {}", problem, problems_ - 1));
    }
    stopped_[static_cast<std::size_t>(problem)] = true;
    list_work();
  }

  std::size_t problems() const { return values_.size(); }
  Tensor image() const { return view(passes_.images_data()).clone(at::MemoryFormat::Contiguous); }

  std::int64_t memory_bytes() const {
    auto bytes = passes_.bytes();
    for (const auto& scratch : scratch_) bytes += scratch.bytes();
    return static_cast<std::int64_t>(bytes);
  }

 private:
  /// The blocks of rows and the columns of the problems that go on.
  void list_work() {
    blocks_.clear(), columns_.clear();
    const auto blocks = passes_.geometry().blocks;
    for (std::int64_t image = 0; image < passes_.images(); ++image) {
      if (stopped_[static_cast<std::size_t>(image / images_per_problem_)]) continue;
      for (auto block = image * blocks; block < (image + 1) * blocks; ++block) blocks_.push_back(block);
      for (auto column = passes_.first_column(image); column < passes_.first_column(image + 1); ++column) {
        columns_.push_back(column);
      }
    }
  }

  /// Each worker takes a run of neighbouring tasks; what a task computes does not depend on who takes it.
  template <typename Task>
  void share(const std::vector<std::int64_t>& tasks, const Task& task) {
    const auto count = static_cast<std::int64_t>(tasks.size());
    at::parallel_for(0, workers_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto worker = begin; worker < end; ++worker) {
        const auto& scratch = scratch_[static_cast<std::size_t>(worker)];
        const auto last = count * (worker + 1) / workers_;
        for (auto i = count * worker / workers_; i < last; ++i) task(tasks[static_cast<std::size_t>(i)], scratch);
      }
    });
  }

  /// The images, or their gradients, where they lie.
  Tensor view(T* data) const {
    const auto npix = passes_.geometry().npix, distance = passes_.geometry().row_distance;
    const auto options = torch::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value);
    return at::from_blob(data, {problems_, images_per_problem_, npix, npix},
                         {images_per_problem_ * npix * distance, npix * distance, distance, 1}, options);
  }

  void weigh_images() {
    auto gradient = view(passes_.gradients_data());
    const auto values = likelihood_(view(passes_.images_data()), gradient).to(torch::kCPU, torch::kFloat64).contiguous();
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
    for (auto i = passes_.first_column(image); i < passes_.first_column(end); ++i) {
      values.chi_squared += column_sums_[static_cast<std::size_t>(i)].chi_squared;
      values.psd += column_sums_[static_cast<std::size_t>(i)].psd;
    }
    for (auto i = problem * pieces; i < (problem + 1) * pieces; ++i) {
      const auto& sums = row_sums_[static_cast<std::size_t>(i)];
      values.sparsity += sums.sparsity.total();
      values.tv_image += sums.tv_image.total();
      values.tsv += sums.tsv.total();
      values.entropy += sums.entropy.total();
      values.tv_channel += sums.tv_channel.total();
      values.parameters += sums.parameters.total();
      values.edge_clamp += sums.edge_clamp;
    }
    values.entropy /= passes_.problem_of(image).terms.total_flux;
    return values;
  }

  std::int64_t problems_, images_per_problem_;
  ImageLikelihood likelihood_;  // empty when the cells are the likelihood
  std::vector<double> chi_squared_of_images_;
  detail::FusedPasses<T> passes_;
  std::int64_t workers_ = 1;
  std::vector<detail::RowScratch<T>> scratch_;
  std::vector<detail::ColumnSums> column_sums_;
  std::vector<RowSums> row_sums_;
  std::vector<bool> stopped_;
  std::vector<std::int64_t> blocks_, columns_;  // of problems that go on
  std::vector<FusedValues> values_;
};

template <typename T>
FusedPipeline<T>::FusedPipeline(const FusedSettings& settings, std::vector<ColumnCells<T>> cells) {
  check_counts(settings);
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
  check_counts(settings);
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
