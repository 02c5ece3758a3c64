#include <mpol_cpp/ops/proximal/cube_dual.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/ops/simd/flush_tiny.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t channels_per_chunk = 16;  // whose next channel is made once more
constexpr std::int64_t rows_of_level = 64;       // of two channels that stay in the second cache

/// Runs body(i, worker) for i of [0, tasks).
template <typename Body>
void share_pieces(std::int64_t tasks, const Body& body, WorkerPool::Order order = WorkerPool::Order::near) {
  share_tasks(
      tasks, 1,
      [&](std::int64_t i, std::int64_t worker) {
        const FlushTiny flush;
        body(i, static_cast<std::size_t>(worker));
      },
      order);
}

}  // namespace

CubeDualSteps::CubeDualSteps(const CubeWeights& weights, std::size_t problem)
    : variation(weights.variation[problem]),
      channels(weights.channels[problem]),
      spectra(weights.spectra[problem]),
      curvature(weights.curvature[problem]),
      bases(weights.bases.empty() ? 0 : weights.bases[problem]) {
  // Norms of the maps without weights.
  const double of_images = std::sqrt(8.0), of_differences = 2, of_norms = 1, of_bends = 8, of_transforms = std::sqrt(8.0);
  const double sum =
      of_images * variation + of_differences * channels + of_norms * spectra + of_bends * curvature + of_transforms * bases;
  if (variation > 0) variation_climb = 1 / (of_images * sum);
  if (channels > 0) channels_climb = 1 / (of_differences * sum);
  if (spectra > 0) spectra_climb = 1 / (of_norms * sum);
  if (curvature > 0) curvature_climb = 1 / (of_bends * sum);
  if (bases > 0) bases_climb = 1 / (of_transforms * sum);
}

template <typename T>
CubeDual<T>::CubeDual(std::int64_t problems, std::int64_t nchan, std::int64_t npix, bool hann, CubeWeights weights,
                      std::shared_ptr<ChannelNeighbors> neighbors)
    : problems_(problems),
      nchan_(nchan),
      chunks_((nchan + channels_per_chunk - 1) / channels_per_chunk),
      weights_(std::move(weights)),
      plane_of_channels_(weights_.has_channels() ? 2 : -1),
      plane_of_spectra_(weights_.has_spectra() ? (weights_.has_channels() ? 3 : 2) : -1),
      plane_of_curvature_(2 + (weights_.has_channels() ? 1 : 0) + (weights_.has_spectra() ? 1 : 0)),
      frame_(npix, hann),
      duals_(plane_of_curvature_ + (weights_.has_curvature() ? 3 : 0), problems, nchan, npix),
      squares_(weights_.has_spectra() ? problems * chunks_ * npix * frame_.distance : 0),
      turned_(static_cast<std::size_t>(problems * nchan * npix)),
      neighbors_(std::move(neighbors)) {
  if (neighbors_ && weights_.has_channels()) {
    duals_before_.emplace(1, problems, 1, npix);
    beyond_ = AlignedArray<T>(2 * problems * npix * frame_.distance);
  }
  for (std::size_t problem = 0; problem < static_cast<std::size_t>(problems); ++problem)
    dual_steps_.emplace_back(weights_, problem);
}

template <typename T>
typename CubeDual<T>::Piece CubeDual<T>::piece_of(std::int64_t task, const RowBlocks& blocks) const {
  const auto of_problem = chunks_ * blocks.count, problem = task / of_problem, chunk = task % of_problem / blocks.count,
             first = chunk * channels_per_chunk;
  return {static_cast<std::size_t>(problem),
          chunk,
          first,
          std::min(nchan_, first + channels_per_chunk),
          blocks.first_row(task % blocks.count),
          blocks.end_row(task % blocks.count)};
}

template <typename T>
double CubeDual<T>::step_of(const Piece& piece, std::int64_t channel, const Pass& pass) const {
  return pass.steps[piece.problem * static_cast<std::size_t>(nchan_) + static_cast<std::size_t>(channel)];
}

template <typename T>
T* CubeDual<T>::squares(std::size_t problem, std::int64_t chunk, std::int64_t row) const {
  return squares_.data() + ((static_cast<std::int64_t>(problem) * chunks_ + chunk) * frame_.npix + row) * frame_.distance;
}

template <typename T>
T* CubeDual<T>::level(std::size_t worker, std::int64_t channel, std::int64_t row_of_block) const {
  return levels_[worker].data() + ((channel & 1) * rows_of_level + row_of_block) * frame_.distance;
}

template <typename T>
DualWalk<T> CubeDual<T>::walk(const Piece& piece, std::int64_t channel, const Pass& pass, std::size_t worker) const {
  const auto image = static_cast<std::int64_t>(piece.problem) * nchan_ + channel;
  const auto& order = duals_.order_of(image);
  const auto& own = dual_steps_[piece.problem];
  OtherSlopes<T> others;
  others.variation_factor = static_cast<T>(own.variation);
  others.curvature_factor = static_cast<T>(own.curvature);
  others.plane_of_curvature = plane_of_curvature_;
  const auto add = [&](std::int64_t plane, std::int64_t of_image, double factor) {
    others.add(duals_.row(order[0], plane, of_image, 0), duals_.row(order[1], plane, of_image, 0), static_cast<T>(factor));
  };
  if (own.channels > 0 && channel > 0) add(plane_of_channels_, image - 1, own.channels);
  if (own.channels > 0 && channel == 0 && neighbors_ && neighbors_->has_before()) {
    const auto problem = static_cast<std::int64_t>(piece.problem);
    others.add(duals_before_->row(order[0], 0, problem, 0), duals_before_->row(order[1], 0, problem, 0),
               static_cast<T>(own.channels));
  }
  const bool has_next = channel + 1 < nchan_ || (neighbors_ && neighbors_->has_after());
  if (own.channels > 0 && has_next) add(plane_of_channels_, image, -own.channels);
  if (own.spectra > 0) add(plane_of_spectra_, image, own.spectra);
  const double step = step_of(piece, channel, pass);
  // Rows of the slope are multiplied by factors where several are added; D^T v alone stays as it is.
  const bool is_single = others.count == 0 && others.curvature_factor == 0;
  if (is_single && own.variation > 0) others.variation_factor = 1;
  const double weight = is_single ? step * own.variation : step;
  PixelCut<T> cut;
  if (weights_.either_sign()) cut = {true, static_cast<T>(step * weights_.magnitude[piece.problem])};
  return DualWalk<T>(frame_, duals_, scratch_[worker], pass.q, pass.mask, image, static_cast<T>(weight), cut,
                     static_cast<T>(pass.momentum[piece.problem]), piece.first_row, others);
}

template <typename T>
double& CubeDual<T>::turned(std::int64_t image, std::int64_t row) {
  return turned_[static_cast<std::size_t>(image * frame_.npix + row)];
}

template <typename T>
void CubeDual<T>::raise_channel(const Piece& piece, std::int64_t channel, const Pass& pass, std::size_t worker) {
  const auto& own = dual_steps_[piece.problem];
  const auto image = static_cast<std::int64_t>(piece.problem) * nchan_ + channel;
  const auto order = duals_.order_of(image);
  const auto n = frame_.npix;
  const T momentum = static_cast<T>(pass.momentum[piece.problem]);
  const double step = step_of(piece, channel, pass), climb = own.variation_climb / step;
  const bool is_beyond = channel == piece.end_channel;  // only for the difference to the one before
  const auto term = [&](std::int64_t plane, std::int64_t of_image, std::int64_t row) {
    return DualTerm<T>{duals_.row(order[0], plane, of_image, row), duals_.row(order[1], plane, of_image, row), momentum};
  };
  const double bend = own.curvature_climb / step;
  double between = 0;
  if (own.channels > 0 && channel > piece.first_channel) {
    between = own.channels_climb / std::max(step, step_of(piece, channel - 1, pass));
  }
  const double of_norm = own.spectra > 0 ? own.spectra_climb / pass.largest_step[piece.problem] : 0;
  auto way = walk(piece, channel, pass, worker);
  for (auto row = piece.first_row; row < piece.end_row; ++row) {
    const T* here = way.smoothed(row);
    if (!is_beyond) {
      double& of_row = turned(image, row);
      of_row = own.variation > 0 ? own.variation / climb * way.raise(row, static_cast<T>(climb)) : 0;
      if (own.curvature > 0) of_row += own.curvature / bend * way.raise_curvature(row, static_cast<T>(bend));
      if (own.spectra > 0) {
        frame_.kernels.ascend_spectra(here, static_cast<T>(of_norm), term(plane_of_spectra_, image, row),
                                      duals_.row(order[2], plane_of_spectra_, image, row),
                                      squares(piece.problem, piece.chunk, row), n);
      }
    }
    if (own.channels <= 0) continue;
    T* kept = level(worker, channel, row - piece.first_row) + proximal_margin;
    std::copy_n(here, n, kept);
    if (neighbors_ && channel == 0) raise_to_before(piece, row, pass, kept);
    if (neighbors_ && channel + 1 == nchan_ && !is_beyond) raise_to_after(piece, row, pass, kept);
    if (between <= 0) continue;
    const T* before = level(worker, channel - 1, row - piece.first_row) + proximal_margin;
    turned(image - 1, row) +=
        own.channels / between *
        frame_.kernels.ascend_channels(before, kept, static_cast<T>(between), term(plane_of_channels_, image - 1, row),
                                       duals_.row(order[2], plane_of_channels_, image - 1, row), n);
  }
}

template <typename T>
void CubeDual<T>::raise(const Piece& piece, const Pass& pass, std::size_t worker) {
  const auto& own = dual_steps_[piece.problem];
  if (own.spectra > 0) {
    std::fill(squares(piece.problem, piece.chunk, piece.first_row), squares(piece.problem, piece.chunk, piece.end_row), T(0));
  }
  const auto end = own.channels > 0 ? std::min(nchan_, piece.end_channel + 1) : piece.end_channel;
  for (auto channel = piece.first_channel; channel < end; ++channel) raise_channel(piece, channel, pass, worker);
}

template <typename T>
void CubeDual<T>::cut(const Piece& piece, const Pass& pass, std::size_t worker) {
  const auto n = frame_.npix;
  const auto& own = dual_steps_[piece.problem];
  if (own.spectra <= 0) return;
  const double climb = own.spectra_climb / pass.largest_step[piece.problem];
  T* factor = level(worker, 0, 0);
  for (auto row = piece.first_row; row < piece.end_row; ++row) {
    std::copy_n(squares(piece.problem, 0, row), n, factor);
    for (std::int64_t chunk = 1; chunk < (neighbors_ ? 1 : chunks_); ++chunk) {  // with neighbors all are in the first one
      const T* others = squares(piece.problem, chunk, row);
      for (std::int64_t i = 0; i < n; ++i) factor[i] += others[i];
    }
    for (std::int64_t i = 0; i < n; ++i) factor[i] = 1 / std::sqrt(std::max(factor[i], T(1)));
    for (auto channel = piece.first_channel; channel < piece.end_channel; ++channel) {
      const auto image = static_cast<std::int64_t>(piece.problem) * nchan_ + channel;
      const auto order = duals_.order_of(image);
      const DualTerm<T> term{duals_.row(order[0], plane_of_spectra_, image, row),
                             duals_.row(order[1], plane_of_spectra_, image, row), static_cast<T>(pass.momentum[piece.problem])};
      turned(image, row) +=
          own.spectra / climb * frame_.kernels.cut_spectra(factor, term, duals_.row(order[2], plane_of_spectra_, image, row), n);
    }
  }
}

template <typename T>
void CubeDual<T>::set_dual(const Tensor& dual) {
  duals_.set_now(dual);
  if (!duals_before_) return;
  const auto last = dual[plane_of_channels_].select(1, nchan_ - 1);
  const auto handed = neighbors_->exchange(at::empty({0}, dual.options()), last);
  if (!handed.before.defined()) return;
  duals_before_->set_now(handed.before.view({1, problems_, 1, frame_.npix, frame_.npix}));
}

template <typename T>
T* CubeDual<T>::beyond(bool after, std::size_t problem, std::int64_t row) const {
  const auto of_problem = static_cast<std::int64_t>(problem) + (after ? problems_ : 0);
  return beyond_.data() + (of_problem * frame_.npix + row) * frame_.distance + proximal_margin;
}

template <typename T>
void CubeDual<T>::ask_for_steps(Pass& pass) const {
  if (!neighbors_) return;
  pass.largest_step = neighbors_->largest(pass.largest_step);
  const auto all = at::tensor(pass.steps, torch::kFloat64).view({problems_, nchan_});
  const auto handed = neighbors_->exchange(all.select(1, 0), all.select(1, nchan_ - 1));
  const auto take = [](const Tensor& steps, std::vector<double>& own) {
    if (steps.defined()) own.assign(steps.const_data_ptr<double>(), steps.const_data_ptr<double>() + steps.numel());
  };
  take(handed.before, pass.before);
  take(handed.after, pass.after);
}

template <typename T>
void CubeDual<T>::exchange_ends(const Pass& pass) {
  const auto n = frame_.npix;
  auto first = at::empty({problems_, n, n}, c10::CppTypeToScalarType<T>::value), last = at::empty_like(first);
  const auto blocks = pass.blocks.count;
  share_tasks(2 * problems_ * blocks, 1, [&](std::int64_t task, std::int64_t worker) {
    const FlushTiny flush;
    const bool is_last = task / (problems_ * blocks) == 1;
    const auto problem = task / blocks % problems_, channel = is_last ? nchan_ - 1 : 0;
    if (dual_steps_[static_cast<std::size_t>(problem)].channels <= 0) return;
    const Piece piece{static_cast<std::size_t>(problem), 0, channel, channel + 1, pass.blocks.first_row(task % blocks),
                      pass.blocks.end_row(task % blocks)};
    auto way = walk(piece, channel, pass, static_cast<std::size_t>(worker));
    T* plane = (is_last ? last : first).template mutable_data_ptr<T>() + problem * n * n;
    for (auto row = piece.first_row; row < piece.end_row; ++row) std::copy_n(way.smoothed(row), n, plane + row * n);
  });
  const auto handed = neighbors_->exchange(first, last);
  for (const bool after : {false, true}) {
    const auto& planes = after ? handed.after : handed.before;
    if (!planes.defined()) continue;
    const auto* values = planes.template const_data_ptr<T>();
    for (std::int64_t row = 0; row < problems_ * n; ++row)
      std::copy_n(values + row * n, n, beyond(after, static_cast<std::size_t>(row / n), row % n));
  }
}

template <typename T>
void CubeDual<T>::join_squares() {
  const auto n = frame_.npix;
  auto sums = at::empty({problems_, n, n}, c10::CppTypeToScalarType<T>::value);
  T* values = sums.template mutable_data_ptr<T>();
  const auto of_row = [&](std::int64_t row) { return squares(static_cast<std::size_t>(row / n), 0, row % n); };
  for (std::int64_t row = 0; row < problems_ * n; ++row) {
    T* to = values + row * n;
    std::copy_n(of_row(row), n, to);
    for (std::int64_t chunk = 1; chunk < chunks_; ++chunk) {
      const T* others = squares(static_cast<std::size_t>(row / n), chunk, row % n);
      for (std::int64_t i = 0; i < n; ++i) to[i] += others[i];
    }
  }
  neighbors_->sum(sums);
  for (std::int64_t row = 0; row < problems_ * n; ++row) std::copy_n(values + row * n, n, of_row(row));
}

template <typename T>
void CubeDual<T>::raise_to_before(const Piece& piece, std::int64_t row, const Pass& pass, const T* own) {
  if (!neighbors_->has_before()) return;
  const auto problem = static_cast<std::int64_t>(piece.problem);
  const double step = std::max(step_of(piece, 0, pass), pass.before[piece.problem]);
  const auto& order = duals_.order_of(problem * nchan_);
  const DualTerm<T> term{duals_before_->row(order[0], 0, problem, row), duals_before_->row(order[1], 0, problem, row),
                         static_cast<T>(pass.momentum[piece.problem])};
  // The neighbor's is counted where it is, too.
  frame_.kernels.ascend_channels(beyond(false, piece.problem, row), own,
                                 static_cast<T>(dual_steps_[piece.problem].channels_climb / step), term,
                                 duals_before_->row(order[2], 0, problem, row), frame_.npix);
}

template <typename T>
void CubeDual<T>::raise_to_after(const Piece& piece, std::int64_t row, const Pass& pass, const T* own) {
  if (!neighbors_->has_after()) return;
  const auto image = static_cast<std::int64_t>(piece.problem) * nchan_ + nchan_ - 1;
  const auto& weights = dual_steps_[piece.problem];
  const double between = weights.channels_climb / std::max(step_of(piece, nchan_ - 1, pass), pass.after[piece.problem]);
  const auto& order = duals_.order_of(image);
  const DualTerm<T> term{duals_.row(order[0], plane_of_channels_, image, row),
                         duals_.row(order[1], plane_of_channels_, image, row), static_cast<T>(pass.momentum[piece.problem])};
  turned(image, row) += weights.channels / between *
                        frame_.kernels.ascend_channels(own, beyond(true, piece.problem, row), static_cast<T>(between), term,
                                                       duals_.row(order[2], plane_of_channels_, image, row), frame_.npix);
}

template <typename T>
void CubeDual<T>::finish(std::int64_t task, const Pass& pass, std::size_t worker, T* x) const {
  const auto piece = piece_of(task, pass.blocks);
  const auto n = frame_.npix;
  for (auto channel = piece.first_channel; channel < piece.end_channel; ++channel) {
    auto way = walk(piece, channel, pass, worker);
    const auto image = static_cast<std::int64_t>(piece.problem) * nchan_ + channel;
    for (auto row = piece.first_row; row < piece.end_row; ++row) std::copy_n(way.primal(row), n, x + (image * n + row) * n);
  }
}

template <typename T>
void CubeDual<T>::apply(const T* q, const T* mask, const std::vector<double>& steps, const std::vector<std::int64_t>& passes,
                        T* x) {
  while (static_cast<std::int64_t>(scratch_.size()) < at::get_num_threads()) {
    scratch_.emplace_back(frame_.distance, weights_.has_curvature() ? 3 : 0);
    levels_.emplace_back(weights_.has_channels() ? 2 * rows_of_level * frame_.distance : frame_.distance);
  }
  const auto count = static_cast<std::size_t>(problems_);
  std::vector<double> largest;
  for (auto first = steps.begin(); first != steps.end(); first += nchan_)
    largest.push_back(*std::max_element(first, first + nchan_));
  const std::vector<double> zeros(count, 0.0), ones(count, 1.0);
  const auto apart = problems_apart(passes);
  const auto images_at_once = apart.empty() ? problems_ * chunks_ : sharing_threads();
  const RowBlocks blocks(frame_.npix, images_at_once, weights_.has_channels() ? rows_of_level : frame_.npix);
  Pass pass{q, mask, steps, passes, std::move(largest), zeros, zeros, ones, zeros, blocks};
  ask_for_steps(pass);
  if (apart.empty()) {
    climb_together(pass);
    std::fill(pass.momentum.begin(), pass.momentum.end(), 0.0);
    share_pieces(problems_ * chunks_ * blocks.count,
                 [&](std::int64_t task, std::size_t worker) { finish(task, pass, worker, x); });
    return;
  }
  const auto climb = [&](std::int64_t i, std::size_t worker) {
    climb_alone(apart[static_cast<std::size_t>(i)], pass, worker, x);
  };
  share_pieces(problems_, climb, WorkerPool::Order::numbers);
}

template <typename T>
void CubeDual<T>::climb_together(Pass& pass) {
  const auto per_problem = chunks_ * pass.blocks.count;
  std::vector<std::int64_t> going;  // pieces
  const auto most = *std::max_element(pass.passes.begin(), pass.passes.end());
  for (std::int64_t done = 0; done < most; ++done) {
    going.clear();
    for (std::int64_t task = 0; task < problems_ * per_problem; ++task) {
      if (goes_on(static_cast<std::size_t>(task / per_problem), pass, done)) going.push_back(task);
    }
    const auto tasks = static_cast<std::int64_t>(going.size());
    const auto piece = [&](std::int64_t i) { return piece_of(going[static_cast<std::size_t>(i)], pass.blocks); };
    if (duals_before_) exchange_ends(pass);
    share_pieces(tasks, [&](std::int64_t i, std::size_t worker) { raise(piece(i), pass, worker); });
    if (plane_of_spectra_ >= 0) {
      if (neighbors_) join_squares();
      share_pieces(tasks, [&](std::int64_t i, std::size_t worker) { cut(piece(i), pass, worker); });
    }
    std::vector<double> sums;
    for (std::size_t problem = 0; problem < static_cast<std::size_t>(problems_); ++problem)
      sums.push_back(sum_of_turned(problem));
    if (neighbors_) neighbors_->sum(sums);
    for (std::size_t problem = 0; problem < sums.size(); ++problem) {
      if (goes_on(problem, pass, done)) turn(problem, sums[problem], pass);
    }
  }
}

template <typename T>
void CubeDual<T>::climb_alone(std::size_t problem, Pass& pass, std::size_t worker, T* x) {
  const auto per_problem = chunks_ * pass.blocks.count, first = static_cast<std::int64_t>(problem) * per_problem;
  const auto each_piece = [&](const auto& body) {
    for (auto task = first; task < first + per_problem; ++task) body(piece_of(task, pass.blocks));
  };
  for (std::int64_t done = 0; goes_on(problem, pass, done); ++done) {
    each_piece([&](const Piece& piece) { raise(piece, pass, worker); });
    if (plane_of_spectra_ >= 0) each_piece([&](const Piece& piece) { cut(piece, pass, worker); });
    turn(problem, sum_of_turned(problem), pass);
  }
  pass.momentum[problem] = 0;
  for (auto task = first; task < first + per_problem; ++task) finish(task, pass, worker, x);
}

template <typename T>
bool CubeDual<T>::goes_on(std::size_t problem, const Pass& pass, std::int64_t done) const {
  return pass.passes[problem] > done && dual_steps_[problem].is_on();
}

template <typename T>
std::vector<std::size_t> CubeDual<T>::problems_apart(const std::vector<std::int64_t>& passes) const {
  if (neighbors_) return {};
  return most_work_first(passes);
}

template <typename T>
double CubeDual<T>::sum_of_turned(std::size_t problem) const {
  const auto of_problem = nchan_ * frame_.npix, begin = static_cast<std::int64_t>(problem) * of_problem;
  return std::accumulate(turned_.begin() + begin, turned_.begin() + begin + of_problem, 0.0);
}

template <typename T>
void CubeDual<T>::turn(std::size_t problem, double sum, Pass& pass) {
  auto& t = pass.t[problem];
  const double next = sum > 0 ? 1 : (1 + std::sqrt(1 + 4 * t * t)) / 2;
  pass.momentum[problem] = sum > 0 ? 0 : (t - 1) / next;
  t = next;
  duals_.turn(problem);
  if (duals_before_) duals_before_->turn(problem);
}

template class CubeDual<float>;
template class CubeDual<double>;

}  // namespace mpol::ops
