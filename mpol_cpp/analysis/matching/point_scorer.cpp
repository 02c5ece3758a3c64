#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <mpol_cpp/analysis/matching/rotation_scorer.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/ops/rotation/ring_kernels.h>

namespace mpol {
namespace {

constexpr std::int64_t templates_per_task = 512;
/// Templates for each match that is asked for, from which on it is worth while to screen them.
constexpr std::int64_t least_screened = 16;
/// Rounding to 16 bits, in steps: a half, and a little for the arithmetic.
constexpr double half_step = 0.51;

/// Between what the score of a template lies.
struct Bounds {
  double lower, upper;
};

/// Point by point, all angles of each at once: rings of the image lie twice behind each other, so that a turned template is the
/// same points a few values on. Where few of many templates are asked for, all are scored in 16 bits first, and those again that
/// can be among the best by the bounds of that rounding: the same are found, with the same scores.
class PointScorer : public RotationScorer {
 public:
  PointScorer(const PolarTemplates& templates, const MatchScaling& scaling, const ScorerSetup& setup);

  std::int64_t images_at_once() const override { return images_at_once_; }
  bool images_on_one_thread() const override { return true; }
  Tensor profiles() const override { return profiles_; }
  Tensor prepared(const Tensor& images) const override;
  Tensor highest(const Tensor& rings, const Tensor& kept, std::int64_t n_best) const override;
  Tensor curves(const Tensor& rings, const Tensor& index) const override;

 private:
  void narrow_weights(const Tensor& values);
  template <typename T>
  void fill_highest(const Tensor& rings, const bool* wanted, Tensor& highest) const;
  /// The templates of each image that may be among the n_best, (count, n) bool.
  template <typename T>
  Tensor candidates(const Tensor& rings, const bool* wanted, std::int64_t n_best) const;
  template <typename T>
  void narrow_rings(const T* ring, std::int16_t* narrow, double& step) const;
  Bounds bounds(const std::int16_t* narrow, double step, std::int64_t number) const;
  template <typename T>
  void fill_curves(const Tensor& rings, const Tensor& index, Tensor& curves) const;
  template <typename T>
  ops::RingPoints<T> points(std::int64_t number, std::int64_t mirror) const;

  std::int64_t size_, nr_, nphi_, row_, mirrors_, images_at_once_;
  Tensor starts_;      // (n + 1) int64
  Tensor offsets_[2];  // (points) int32, where each point begins in the rings: of templates, and of mirrored ones
  Tensor values_, profiles_;
  Tensor narrow_;                     // (points) int16: weights over the step of their template
  std::vector<double> steps_, sums_;  // of each template: that step, and what magnitudes of its weights add up to
  bool screens_ = true;               // no template has too many points
};

PointScorer::PointScorer(const PolarTemplates& templates, const MatchScaling& scaling, const ScorerSetup& setup)
    : size_(templates.size()),
      nr_(templates.nr()),
      nphi_(templates.nphi()),
      row_(2 * nphi_ + ops::ring_margin),
      mirrors_(setup.mirrors == Mirrors::both ? 2 : 1) {
  const auto& points = *templates.points();
  starts_ = points.starts;
  values_ = scaling.points(points).to(setup.images);
  profiles_ = scaling.profiles(points).to(setup.images);
  const auto bins = points.bins.to(torch::kInt64);
  const auto radius = bins.floor_divide(nphi_), azimuth = bins.remainder(nphi_);
  offsets_[0] = (radius * row_ + azimuth).to(torch::kInt32);
  offsets_[1] = (radius * row_ + (nphi_ - azimuth).remainder(nphi_)).to(torch::kInt32);
  narrow_weights(scaling.points(points).to(torch::kFloat64));
  // An image takes: itself, scaled, in rings, in 16 bits, and while it becomes so; and its scores and their bounds.
  const auto needed = static_cast<std::int64_t>(setup.images.dtype().itemsize()) * (3 * nr_ * row_ + 4 * size_) +
                      static_cast<std::int64_t>(sizeof(std::int16_t)) * nr_ * row_ +
                      static_cast<std::int64_t>(sizeof(Bounds)) * size_;
  check_budget(setup.memory_budget, needed, templates);
  images_at_once_ = setup.memory_budget / needed;
}

Tensor PointScorer::prepared(const Tensor& images) const {
  std::vector<Tensor> turns{images, images};
  for (auto left = ops::ring_margin; left > 0; left -= nphi_) turns.push_back(images.narrow(2, 0, std::min(left, nphi_)));
  return at::cat(turns, 2);
}

template <typename T>
ops::RingPoints<T> PointScorer::points(std::int64_t number, std::int64_t mirror) const {
  const auto* starts = starts_.const_data_ptr<std::int64_t>();
  return {offsets_[mirror].const_data_ptr<std::int32_t>() + starts[number], values_.const_data_ptr<T>() + starts[number],
          starts[number + 1] - starts[number]};
}

/// @param values  (points) float64
void PointScorer::narrow_weights(const Tensor& values) {
  const auto weights = values.contiguous();
  narrow_ = at::empty(weights.sizes(), torch::kInt16);
  const auto* from = weights.const_data_ptr<double>();
  const auto* starts = starts_.const_data_ptr<std::int64_t>();
  auto* to = narrow_.mutable_data_ptr<std::int16_t>();
  for (std::int64_t k = 0; k < size_; ++k) {
    double sum = 0, largest = 0;
    for (auto i = starts[k]; i < starts[k + 1]; ++i) {
      sum += std::abs(from[i]);
      largest = std::max(largest, std::abs(from[i]));
    }
    const auto count = static_cast<double>(starts[k + 1] - starts[k]);
    if (count > ops::most_screened_points) screens_ = false;
    const double room = ops::most_screened_weight - ops::screened_weight_of_point * count;
    const double step = std::max(sum / std::max(room, 1.0), largest / ops::most_screened_value);
    for (auto i = starts[k]; i < starts[k + 1]; ++i)
      to[i] = static_cast<std::int16_t>(step > 0 ? std::lround(from[i] / step) : 0);
    steps_.push_back(step);
    sums_.push_back(sum);
  }
}

template <typename T>
void PointScorer::fill_highest(const Tensor& rings, const bool* wanted, Tensor& highest) const {
  const auto kernels = ops::ring_kernels<T>(selected_isa());
  const auto* image = rings.const_data_ptr<T>();
  auto* out = highest.mutable_data_ptr<T>();
  const auto parts = (size_ + templates_per_task - 1) / templates_per_task;
  ops::share_tasks(rings.size(0) * parts, 1, [&](std::int64_t task, std::int64_t) {
    const auto i = task / parts, first = task % parts * templates_per_task;
    for (auto k = first; k < std::min(first + templates_per_task, size_); ++k) {
      if (wanted != nullptr && !wanted[i * size_ + k]) continue;
      T best = kernels.highest(image + i * nr_ * row_, points<T>(k, 0), nphi_);
      if (mirrors_ == 2) best = std::max(best, kernels.highest(image + i * nr_ * row_, points<T>(k, 1), nphi_));
      out[i * size_ + k] = best;
    }
  });
}

/// The first turn of each ring is narrowed, and laid out as prepared() does.
template <typename T>
void PointScorer::narrow_rings(const T* ring, std::int16_t* narrow, double& step) const {
  const auto kernels = ops::ring_kernels<T>(selected_isa());
  std::vector<T> turn(static_cast<std::size_t>(nr_ * nphi_));
  for (std::int64_t r = 0; r < nr_; ++r) std::copy_n(ring + r * row_, nphi_, turn.data() + r * nphi_);
  std::vector<std::int16_t> turned(turn.size());
  step = kernels.narrow(turn.data(), nr_ * nphi_, turned.data());
  for (std::int64_t r = 0; r < nr_; ++r) {
    for (std::int64_t at = 0; at < row_; at += nphi_)
      std::copy_n(turned.data() + r * nphi_, std::min(nphi_, row_ - at), narrow + r * row_ + at);
  }
}

/// With x = step X + e and w = b W + d, |e| and |d| at most half a step, sum w x differs from step b sum W X by at most
/// (step sum|w| + b sum|step X|) / 2, and that from 65536 times the sum of the upper halves by less than their number. Scores in
/// float32 are rounded, too.
Bounds PointScorer::bounds(const std::int16_t* narrow, double step, std::int64_t number) const {
  if (!std::isfinite(step)) return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  const auto kernels = ops::ring_kernels<float>(selected_isa());  // those of 16 bits are the same in both
  const auto* starts = starts_.const_data_ptr<std::int64_t>();
  const auto count = starts[number + 1] - starts[number];
  std::int64_t best = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t mirror = 0; mirror < mirrors_; ++mirror) {
    const ops::RingPoints<std::int16_t> points{offsets_[mirror].const_data_ptr<std::int32_t>() + starts[number],
                                               narrow_.const_data_ptr<std::int16_t>() + starts[number], count};
    best = std::max(best, kernels.screened(narrow, points, nphi_));
  }
  const auto place = static_cast<std::size_t>(number);
  constexpr double upper_half = 65536;
  const double unit = step * steps_[place] * upper_half, all = static_cast<double>(count);
  const double largest = step * (ops::most_screened_value + 1);  // of the image
  const double of_scores = all * static_cast<double>(std::numeric_limits<float>::epsilon()) * sums_[place] * largest;
  const double rounding = half_step * (step * sums_[place] + steps_[place] * all * largest) + of_scores;
  return {unit * static_cast<double>(best) - rounding, unit * (static_cast<double>(best) + all) + rounding};
}

template <typename T>
Tensor PointScorer::candidates(const Tensor& rings, const bool* wanted, std::int64_t n_best) const {
  const auto images = rings.size(0);
  const auto narrow = at::empty({images, nr_ * row_}, torch::kInt16);
  auto* narrowed = narrow.mutable_data_ptr<std::int16_t>();
  std::vector<double> steps(static_cast<std::size_t>(images));
  ops::share_tasks(images, 1, [&](std::int64_t i, std::int64_t) {
    narrow_rings(rings.const_data_ptr<T>() + i * nr_ * row_, narrowed + i * nr_ * row_, steps[static_cast<std::size_t>(i)]);
  });
  constexpr Bounds none{-std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  std::vector<Bounds> all(static_cast<std::size_t>(images * size_), none);
  const auto parts = (size_ + templates_per_task - 1) / templates_per_task;
  ops::share_tasks(images * parts, 1, [&](std::int64_t task, std::int64_t) {
    const auto i = task / parts, first = task % parts * templates_per_task;
    for (auto k = first; k < std::min(first + templates_per_task, size_); ++k) {
      if (wanted != nullptr && !wanted[i * size_ + k]) continue;
      all[static_cast<std::size_t>(i * size_ + k)] = bounds(narrowed + i * nr_ * row_, steps[static_cast<std::size_t>(i)], k);
    }
  });
  auto kept = at::empty({images, size_}, torch::kBool);
  auto* keep = kept.mutable_data_ptr<bool>();
  ops::share_tasks(images, 1, [&](std::int64_t i, std::int64_t) {
    const auto own = all.begin() + i * size_;
    std::vector<double> lower;
    lower.reserve(static_cast<std::size_t>(size_));
    std::transform(own, own + size_, std::back_inserter(lower), [](const Bounds& bound) { return bound.lower; });
    std::nth_element(lower.begin(), lower.begin() + (n_best - 1), lower.end(), std::greater<>());
    const double least = lower[static_cast<std::size_t>(n_best - 1)];
    for (std::int64_t k = 0; k < size_; ++k)
      keep[i * size_ + k] = own[k].upper >= least && (wanted == nullptr || wanted[i * size_ + k]);
  });
  return kept;
}

template <typename T>
void PointScorer::fill_curves(const Tensor& rings, const Tensor& index, Tensor& curves) const {
  const auto kernels = ops::ring_kernels<T>(selected_isa());
  const auto* image = rings.const_data_ptr<T>();
  const auto* number = index.const_data_ptr<std::int64_t>();
  auto* out = curves.mutable_data_ptr<T>();
  const auto each = index.size(1);
  ops::share_tasks(index.numel(), each, [&](std::int64_t i, std::int64_t) {
    std::vector<T> curve(static_cast<std::size_t>(nphi_ + ops::ring_margin));
    for (std::int64_t mirror = 0; mirror < mirrors_; ++mirror) {
      kernels.correlate(image + i / each * nr_ * row_, points<T>(number[i], mirror), nphi_, curve.data());
      std::copy_n(curve.data(), nphi_, out + (i * mirrors_ + mirror) * nphi_);
    }
  });
}

Tensor PointScorer::highest(const Tensor& rings, const Tensor& kept, std::int64_t n_best) const {
  auto wanted = kept.defined() ? kept.contiguous() : kept;
  const auto flags = [&wanted] { return wanted.defined() ? wanted.const_data_ptr<bool>() : nullptr; };
  const bool wide = rings.scalar_type() == torch::kFloat64;
  if (screens_ && size_ >= least_screened * n_best)
    wanted = wide ? candidates<double>(rings, flags(), n_best) : candidates<float>(rings, flags(), n_best);
  auto highest = at::full({rings.size(0), size_}, -std::numeric_limits<double>::infinity(), rings.options());
  if (wide) fill_highest<double>(rings, flags(), highest);
  else fill_highest<float>(rings, flags(), highest);
  return highest;
}

Tensor PointScorer::curves(const Tensor& rings, const Tensor& index) const {
  const auto numbers = index.contiguous();
  auto curves = at::empty({rings.size(0), index.size(1), mirrors_, nphi_}, rings.options());
  if (rings.scalar_type() == torch::kFloat64) fill_curves<double>(rings, numbers, curves);
  else fill_curves<float>(rings, numbers, curves);
  return curves;
}

}  // namespace

std::unique_ptr<RotationScorer> point_scorer(const PolarTemplates& templates, const MatchScaling& scaling,
                                             const ScorerSetup& setup) {
  return std::make_unique<PointScorer>(templates, scaling, setup);
}

}  // namespace mpol
