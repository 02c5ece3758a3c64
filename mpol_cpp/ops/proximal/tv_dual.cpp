#include <mpol_cpp/ops/proximal/tv_dual.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/ops/simd/flush_tiny.h>

namespace mpol::ops {

template <typename T>
TvDual<T>::TvDual(std::int64_t problems, std::int64_t nchan, std::int64_t npix, bool hann)
    : problems_(problems), nchan_(nchan), frame_(npix, hann), duals_(2, problems, nchan, npix) {}

template <typename T>
void TvDual<T>::apply(const T* q, const T* mask, const std::vector<double>& weights, const std::vector<double>& thresholds,
                      const std::vector<std::int64_t>& passes, T* x) {
  const auto cut_of = [&thresholds](std::int64_t image) -> PixelCut<T> {
    if (thresholds.empty()) return {};
    return {true, static_cast<T>(thresholds[static_cast<std::size_t>(image)])};
  };
  while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) scratch_.emplace_back(frame_.distance);
  const auto count = static_cast<std::size_t>(problems_);
  const auto npix = frame_.npix;
  const auto apart = most_work_first(passes);
  const RowBlocks rows(npix, apart.empty() ? images() : sharing_threads(), npix);
  const auto blocks = rows.count;
  std::vector<double> t(count, 1.0), momentum(count, 0.0);
  std::vector<double> turned(static_cast<std::size_t>(images() * npix));  // of each row
  const auto goes_on = [&](std::int64_t block, std::int64_t pass) {
    const auto image = block / blocks;
    return passes[static_cast<std::size_t>(image / nchan_)] > pass && weights[static_cast<std::size_t>(image)] > 0;
  };
  const auto raise = [&](std::int64_t block, std::int64_t worker) {
    const auto image = block / blocks;
    const double weight = weights[static_cast<std::size_t>(image)];
    DualWalk<T> walk(frame_, duals_, scratch_[static_cast<std::size_t>(worker)], q, mask, image, static_cast<T>(weight),
                     cut_of(image), static_cast<T>(momentum[static_cast<std::size_t>(image / nchan_)]), rows.first_row(block));
    for (auto row = rows.first_row(block); row < rows.end_row(block); ++row) {
      turned[static_cast<std::size_t>(image * npix + row)] = walk.raise(row, static_cast<T>(1 / (8 * weight)));
    }
  };
  const auto turn = [&](std::size_t problem) {
    const auto per_problem = nchan_ * npix;
    const auto begin = turned.begin() + static_cast<std::int64_t>(problem) * per_problem;
    const double sum = std::accumulate(begin, begin + per_problem, 0.0);
    const double next = sum > 0 ? 1 : (1 + std::sqrt(1 + 4 * t[problem] * t[problem])) / 2;
    momentum[problem] = sum > 0 ? 0 : (t[problem] - 1) / next;
    t[problem] = next;
    duals_.turn(problem);
  };
  const auto finish = [&](std::int64_t block, std::int64_t worker) {
    const auto image = block / blocks;
    DualWalk<T> walk(frame_, duals_, scratch_[static_cast<std::size_t>(worker)], q, mask, image,
                     static_cast<T>(weights[static_cast<std::size_t>(image)]), cut_of(image), 0, rows.first_row(block));
    for (auto row = rows.first_row(block); row < rows.end_row(block); ++row) {
      std::copy_n(walk.primal(row), npix, x + (image * npix + row) * npix);
    }
  };
  if (!apart.empty()) {
    const auto climb = [&](std::int64_t i, std::int64_t worker) {
      const FlushTiny flush;
      const auto problem = apart[static_cast<std::size_t>(i)];
      const auto of_problem = nchan_ * blocks, first = static_cast<std::int64_t>(problem) * of_problem;
      for (std::int64_t pass = 0; pass < passes[problem]; ++pass) {
        for (auto block = first; block < first + of_problem; ++block) {
          if (goes_on(block, pass)) raise(block, worker);
        }
        turn(problem);
      }
      for (auto block = first; block < first + of_problem; ++block) finish(block, worker);
    };
    share_tasks(problems_, 1, climb, WorkerPool::Order::numbers);
    return;
  }
  std::vector<std::int64_t> going;  // blocks of images
  const auto most = *std::max_element(passes.begin(), passes.end());
  for (std::int64_t pass = 0; pass < most; ++pass) {
    going.clear();
    for (std::int64_t block = 0; block < images() * blocks; ++block) {
      if (goes_on(block, pass)) going.push_back(block);
    }
    const auto raise_one = [&](std::int64_t i, std::int64_t worker) {
      const FlushTiny flush;
      raise(going[static_cast<std::size_t>(i)], worker);
    };
    share_tasks(static_cast<std::int64_t>(going.size()), 1, raise_one, WorkerPool::Order::near);
    for (std::size_t problem = 0; problem < count; ++problem) {
      if (passes[problem] > pass) turn(problem);
    }
  }
  const auto finish_one = [&](std::int64_t block, std::int64_t worker) {
    const FlushTiny flush;
    finish(block, worker);
  };
  share_tasks(images() * blocks, 1, finish_one, WorkerPool::Order::near);
}

template class TvDual<float>;
template class TvDual<double>;

}  // namespace mpol::ops
