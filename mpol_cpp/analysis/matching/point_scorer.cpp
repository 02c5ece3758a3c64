#include <algorithm>
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

/// Point by point, all angles of each at once: rings of the image lie twice behind each other, so that a turned template is the
/// same points a few values on.
class PointScorer : public RotationScorer {
 public:
  PointScorer(const PolarTemplates& templates, const MatchScaling& scaling, const ScorerSetup& setup);

  std::int64_t images_at_once() const override { return images_at_once_; }
  bool images_on_one_thread() const override { return true; }
  Tensor profiles() const override { return profiles_; }
  Tensor prepared(const Tensor& images) const override;
  Tensor highest(const Tensor& rings, const Tensor& kept) const override;
  Tensor curves(const Tensor& rings, const Tensor& index) const override;

 private:
  template <typename T>
  void fill_highest(const Tensor& rings, const Tensor& kept, Tensor& highest) const;
  template <typename T>
  void fill_curves(const Tensor& rings, const Tensor& index, Tensor& curves) const;
  template <typename T>
  ops::RingPoints<T> points(std::int64_t number, std::int64_t mirror) const;

  std::int64_t size_, nr_, nphi_, row_, mirrors_, images_at_once_;
  Tensor starts_;      // (n + 1) int64
  Tensor offsets_[2];  // (points) int32, where each point begins in the rings: of templates, and of mirrored ones
  Tensor values_, profiles_;
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
  // An image takes: itself, scaled, in rings, and while it becomes so; and its scores.
  const auto needed = static_cast<std::int64_t>(setup.images.dtype().itemsize()) * (3 * nr_ * row_ + 4 * size_);
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

template <typename T>
void PointScorer::fill_highest(const Tensor& rings, const Tensor& kept, Tensor& highest) const {
  const auto kernels = ops::ring_kernels<T>(selected_isa());
  const auto* image = rings.const_data_ptr<T>();
  const bool* wanted = kept.defined() ? kept.const_data_ptr<bool>() : nullptr;
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

Tensor PointScorer::highest(const Tensor& rings, const Tensor& kept) const {
  const auto wanted = kept.defined() ? kept.contiguous() : kept;
  auto highest = at::full({rings.size(0), size_}, -std::numeric_limits<double>::infinity(), rings.options());
  if (rings.scalar_type() == torch::kFloat64) fill_highest<double>(rings, wanted, highest);
  else fill_highest<float>(rings, wanted, highest);
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
