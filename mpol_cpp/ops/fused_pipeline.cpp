#include <mpol_cpp/ops/fused_pipeline.h>

#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused_passes.h>

namespace mpol::ops {

template <typename T>
class FusedPipeline<T>::Runs {
 public:
  Runs(const FusedSettings& settings, std::vector<ColumnCells<T>> cells, ImageLikelihood likelihood)
      : problems_(settings.problems),
        images_per_problem_(settings.nchan),
        total_flux_(settings.terms.total_flux),
        likelihood_(std::move(likelihood)),
        passes_(settings, std::move(cells), likelihood_ ? detail::GradientOf::images : detail::GradientOf::cells),
        column_sums_(static_cast<std::size_t>(problems_ * passes_.columns())),
        row_sums_(static_cast<std::size_t>(passes_.images() * passes_.geometry().blocks)),
        values_(static_cast<std::size_t>(problems_)) {}

  const std::vector<FusedValues>& run(FusedUpdate kind, const UpdateRow<T>& pixels, const UpdateSettings& update) {
    const auto blocks = passes_.geometry().blocks;
    workers_ = at::get_num_threads();
    while (static_cast<std::int64_t>(scratch_.size()) < workers_) scratch_.push_back(passes_.scratch());
    share(passes_.images() * blocks, [&](std::int64_t task, const detail::RowScratch<T>& scratch) {
      passes_.map_rows(pixels.base, task / blocks, task % blocks, scratch);
    });
    if (likelihood_) weigh_images();
    share(problems_ * passes_.columns(), [&](std::int64_t task, const detail::RowScratch<T>& scratch) {
      column_sums_[static_cast<std::size_t>(task)] =
          passes_.weigh_column(task / passes_.columns(), task % passes_.columns(), scratch);
    });
    share(passes_.images() * blocks, [&](std::int64_t task, const detail::RowScratch<T>& scratch) {
      auto& sums = row_sums_[static_cast<std::size_t>(task)];
      sums = {};
      passes_.finish_rows(kind, pixels, update, task / blocks, task % blocks, scratch, sums);
    });
    for (std::int64_t problem = 0; problem < problems_; ++problem) values_[static_cast<std::size_t>(problem)] = sum_up(problem);
    return values_;
  }

  Tensor image() const { return view(passes_.images_data()).clone(at::MemoryFormat::Contiguous); }

  std::int64_t memory_bytes() const {
    auto bytes = passes_.bytes();
    for (const auto& scratch : scratch_) bytes += scratch.bytes();
    return static_cast<std::int64_t>(bytes);
  }

 private:
  /// Each worker takes a run of neighbouring tasks; what a task computes does not depend on who takes it.
  template <typename Task>
  void share(std::int64_t tasks, const Task& task) {
    at::parallel_for(0, workers_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto worker = begin; worker < end; ++worker) {
        const auto& scratch = scratch_[static_cast<std::size_t>(worker)];
        for (auto i = tasks * worker / workers_; i < tasks * (worker + 1) / workers_; ++i) task(i, scratch);
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
    const auto columns = passes_.columns(), pieces = images_per_problem_ * passes_.geometry().blocks;
    values.chi_squared = likelihood_ ? chi_squared_of_images_[static_cast<std::size_t>(problem)] : passes_.constant();
    for (auto i = problem * columns; i < (problem + 1) * columns; ++i) {
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
    values.entropy /= total_flux_;
    return values;
  }

  std::int64_t problems_, images_per_problem_;
  double total_flux_;
  ImageLikelihood likelihood_;  // empty when the cells are the likelihood
  std::vector<double> chi_squared_of_images_;
  detail::FusedPasses<T> passes_;
  std::int64_t workers_ = 1;
  std::vector<detail::RowScratch<T>> scratch_;
  std::vector<detail::ColumnSums> column_sums_;
  std::vector<RowSums> row_sums_;
  std::vector<FusedValues> values_;
};

template <typename T>
FusedPipeline<T>::FusedPipeline(const FusedSettings& settings, std::vector<ColumnCells<T>> cells) {
  if (settings.nchan < 1 || settings.problems < 1 || static_cast<std::int64_t>(cells.size()) != settings.nchan) {
    throw ValueError(
        fmt::format("{} problems of {} channels with cells of {}: at least one of each is needed, and cells for "
                    "every channel",
                    settings.problems, settings.nchan, cells.size()));
  }
  runs_ = std::make_unique<Runs>(settings, std::move(cells), nullptr);
}

template <typename T>
FusedPipeline<T>::FusedPipeline(const FusedSettings& settings, ImageLikelihood likelihood) {
  if (settings.nchan < 1 || settings.problems < 1 || !likelihood) {
    throw ValueError(fmt::format("{} problems of {} channels: at least one of each is needed, and a likelihood",
                                 settings.problems, settings.nchan));
  }
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
  return runs_->run(kind, pixels, update);
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
