#include <mpol_cpp/ops/fused/cpu/cell_chi_squared.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

#include <mpol_cpp/ops/fft/line_transforms.h>
#include <mpol_cpp/ops/fused/cpu/fused_kernels.h>
#include <mpol_cpp/ops/fused/cpu/fused_passes.h>
#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {

template <typename T>
class CellChiSquared<T>::Passes {
 public:
  Passes(const std::vector<ColumnCells<T>>& cells, std::int64_t npix, double cell_area)
      : npix_(npix),
        geometry_(detail::FusedGeometry::of<T>(npix)),
        cell_area_(cell_area),
        fft_(npix),
        kernels_(fused_kernels<T>(selected_isa())) {
    std::int64_t most_cells = 0;
    first_panel_.push_back(0);
    for (const auto& own : cells) {
      cells_.push_back(panel_cells(own, fft_.slots()));
      const auto& begin = cells_.back().begin;
      for (std::size_t panel = 0; panel + 1 < begin.size(); ++panel) {
        places_.push_back({cells_.size() - 1, panel});
        most_cells = std::max<std::int64_t>(most_cells, begin[panel + 1] - begin[panel]);
      }
      first_panel_.push_back(static_cast<std::int64_t>(places_.size()));
    }
    scratch_of_cells_ = 2 * (AlignedArray<T>::padded(most_cells) + row_margin);
  }

  std::vector<double> run(const T* sky, std::int64_t problems, T* gradient) {
    const std::lock_guard lock(mutex_);
    const auto nchan = static_cast<std::int64_t>(cells_.size()), panels = static_cast<std::int64_t>(places_.size());
    const auto blocks = (npix_ + batch - 1) / batch, count = problems * panels;
    while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) {
      scratch_.push_back({AlignedArray<T>(batch * geometry_.row_distance), AlignedArray<T>(fft_.scratch_size()),
                          AlignedArray<T>(scratch_of_cells_)});
    }
    if (spectra_.size() < count * geometry_.panel_distance) spectra_ = AlignedArray<T>(count * geometry_.panel_distance);
    sums_.resize(static_cast<std::size_t>(count));
    const auto share = [&](std::int64_t tasks, const auto& task) {
      share_tasks(
          tasks, 1, [&](std::int64_t i, std::int64_t worker) { task(i, scratch_[static_cast<std::size_t>(worker)]); },
          WorkerPool::Order::near);
    };
    share(problems * nchan * blocks, [&](std::int64_t i, const Scratch& scratch) {
      const auto image = i / blocks, row = i % blocks * batch, rows = std::min(batch, npix_ - row);
      for (std::int64_t r = 0; r < rows; ++r) {
        std::copy_n(sky + (image * npix_ + row + r) * npix_, npix_, scratch.lines.data() + r * geometry_.row_distance);
      }
      const auto own = panels_of(image, row);
      if (own.count > 0)
        fft_.forward_rows(scratch.lines.data(), geometry_.row_distance, rows, fft_.everything(), own, scratch.transform.data());
    });
    share(count, [&](std::int64_t i, const Scratch& scratch) { sums_[static_cast<std::size_t>(i)] = weigh(i, scratch); });
    share(problems * nchan * blocks, [&](std::int64_t i, const Scratch& scratch) {
      const auto image = i / blocks, row = i % blocks * batch, rows = std::min(batch, npix_ - row);
      const auto own = panels_of(image, row);
      T* pixels = gradient + (image * npix_ + row) * npix_;
      if (own.count == 0) {
        std::fill_n(pixels, rows * npix_, T(0));
        return;
      }
      fft_.adjoint_rows(own, scratch.lines.data(), geometry_.row_distance, rows, fft_.everything(), scratch.transform.data());
      for (std::int64_t r = 0; r < rows; ++r)
        std::copy_n(scratch.lines.data() + r * geometry_.row_distance, npix_, pixels + r * npix_);
    });
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(problems * nchan));
    for (std::int64_t image = 0; image < problems * nchan; ++image) {
      const auto channel = static_cast<std::size_t>(image % nchan);
      const auto begin = sums_.begin() + image / nchan * panels;
      values.push_back(
          std::accumulate(begin + first_panel_[channel], begin + first_panel_[channel + 1], cells_[channel].constant));
    }
    return values;
  }

 private:
  static constexpr std::int64_t batch = LineTransforms<T>::batch, row_size = LineTransforms<T>::row_size;
  struct Scratch {
    AlignedArray<T> lines, transform, cells;
  };
  struct Place {  // of a panel
    std::size_t channel, index;
  };

  /// The panels of an image from a row on.
  FftPanels<T> panels_of(std::int64_t image, std::int64_t row) {
    const auto nchan = static_cast<std::int64_t>(cells_.size()), channel = image % nchan;
    const auto first = first_panel_[static_cast<std::size_t>(channel)];
    const auto& columns = cells_[static_cast<std::size_t>(channel)].columns;
    return {columns.data(), static_cast<std::int64_t>(columns.size()),
            spectra_.data() + (image / nchan * static_cast<std::int64_t>(places_.size()) + first) * geometry_.panel_distance +
                row * row_size,
            geometry_.panel_distance};
  }

  double weigh(std::int64_t panel, const Scratch& scratch) {
    const auto [channel, index] = places_[static_cast<std::size_t>(panel) % places_.size()];
    const auto& cells = cells_[channel];
    const auto begin = cells.begin[index];
    T* values = spectra_.data() + panel * geometry_.panel_distance;
    fft_.forward_panel(values, scratch.transform.data());
    const double chi_squared =
        kernels_.weigh_residual(values, npix_,
                                {cells.place.data() + begin, cells.weight.data() + begin, cells.real.data() + begin,
                                 cells.imag.data() + begin, cells.begin[index + 1] - begin},
                                cell_area_, 2 * cell_area_, scratch.cells.data());
    fft_.inverse_panel(values, scratch.transform.data());
    return chi_squared;
  }

  std::int64_t npix_;
  detail::FusedGeometry geometry_;
  double cell_area_;
  LineTransforms<T> fft_;
  FusedKernels<T> kernels_;
  std::vector<PanelCells<T>> cells_;       // of each channel
  std::vector<Place> places_;              // of the panels of a problem
  std::vector<std::int64_t> first_panel_;  // of each channel, and behind the last
  std::int64_t scratch_of_cells_ = 0;
  std::mutex mutex_;  // for all below
  std::vector<Scratch> scratch_;
  AlignedArray<T> spectra_;
  std::vector<double> sums_;
};

template <typename T>
CellChiSquared<T>::CellChiSquared(std::vector<ColumnCells<T>> cells, std::int64_t npix, double cell_area)
    : passes_(std::make_unique<Passes>(cells, npix, cell_area)) {}

template <typename T>
CellChiSquared<T>::~CellChiSquared() = default;

template <typename T>
std::vector<double> CellChiSquared<T>::run(const T* sky, std::int64_t problems, T* gradient) {
  return passes_->run(sky, problems, gradient);
}

template class CellChiSquared<float>;
template class CellChiSquared<double>;

}  // namespace mpol::ops
