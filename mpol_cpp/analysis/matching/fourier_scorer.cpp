#include <algorithm>
#include <limits>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fft_irfft.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/nonzero.h>

#include <mpol_cpp/analysis/matching/rotation_scorer.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// The score at a turn by s bins, sum T[k] I[k + s], has the transform sum_r conj(T) I over azimuth; that of the mirrored
/// template, sum T[k] I[s - k], has sum_r T I.
class FourierScorer : public RotationScorer {
 public:
  FourierScorer(const PolarTemplates& templates, const MatchScaling& scaling, const ScorerSetup& setup);

  std::int64_t images_at_once() const override { return images_at_once_; }
  bool images_on_one_thread() const override { return false; }
  Tensor profiles() const override;
  Tensor prepared(const Tensor& images) const override;
  Tensor highest(const Tensor& spectra, const Tensor& kept) const override;
  Tensor curves(const Tensor& spectra, const Tensor& index) const override;

 private:
  Tensor scaled_maps(const Tensor& index) const { return scaling_.templates(templates_.maps(index, setup_.images)); }
  Tensor template_spectra(const Tensor& index) const;

  PolarTemplates templates_;
  MatchScaling scaling_;
  ScorerSetup setup_;
  std::int64_t size_, nr_, nphi_, images_at_once_, templates_at_once_;
  Tensor all_;  // transforms of all templates, if they are one batch
};

FourierScorer::FourierScorer(const PolarTemplates& templates, const MatchScaling& scaling, const ScorerSetup& setup)
    : templates_(templates),
      scaling_(scaling),
      setup_(setup),
      size_(templates.size()),
      nr_(templates.nr()),
      nphi_(templates.nphi()) {
  const auto item = static_cast<std::int64_t>(setup.images.dtype().itemsize());
  // Transforms take the room of a map, and so do their copies in another order. A quarter of the budget is for templates, one for
  // images, and the rest for the product of these, in frequencies, in the order of these, and in angles.
  const auto of_one = 5 * item * nr_ * (nphi_ + 2), of_pair = 4 * item * (nphi_ + 2);
  check_budget(setup.memory_budget, std::max(4 * of_one, 2 * of_pair), templates);
  const auto quarter = setup.memory_budget / 4;
  templates_at_once_ = std::min({size_, quarter / of_one, 2 * quarter / of_pair});
  images_at_once_ = std::min(quarter / of_one, std::max<std::int64_t>(1, 2 * quarter / (of_pair * templates_at_once_)));
  if (templates_at_once_ == size_) all_ = template_spectra(at::arange(size_, torch::kInt64));
}

/// (frequencies, nr, count)
Tensor FourierScorer::template_spectra(const Tensor& index) const {
  return at::fft_rfft(scaled_maps(index)).permute({2, 1, 0}).contiguous();
}

/// (frequencies, count, nr)
Tensor FourierScorer::prepared(const Tensor& images) const { return at::fft_rfft(images).permute({2, 0, 1}).contiguous(); }

Tensor FourierScorer::profiles() const {
  std::vector<Tensor> parts;
  for (std::int64_t first = 0; first < size_; first += templates_at_once_) {
    const auto last = std::min(first + templates_at_once_, size_);
    parts.push_back(scaled_maps(at::arange(first, last, torch::kInt64)).sum(2));
  }
  return normalized_profiles(at::cat(parts));
}

Tensor FourierScorer::highest(const Tensor& spectra, const Tensor& kept) const {
  const auto count = spectra.size(1);
  auto highest = at::full({count, size_}, -std::numeric_limits<double>::infinity(), setup_.images);
  const auto columns = kept.defined() ? kept.any(0).nonzero().flatten().cpu() : at::arange(size_, torch::kInt64);
  const auto conjugate = spectra.conj().resolve_conj();
  const auto best = [&](const Tensor& left, const Tensor& right) {
    return at::fft_irfft(at::bmm(left, right).permute({1, 2, 0}).contiguous(), nphi_).amax(-1);
  };
  for (std::int64_t first = 0; first < columns.size(0); first += templates_at_once_) {
    const auto index = columns.slice(0, first, std::min(first + templates_at_once_, columns.size(0)));
    const auto there = index.to(spectra.device());
    const bool whole = all_.defined() && index.size(0) == size_;
    const auto of_templates = whole ? all_ : all_.defined() ? all_.index_select(2, there) : template_spectra(index);
    auto found = best(conjugate, of_templates);  // of the conjugate, angles run backwards: the same maximum
    if (setup_.mirrors == Mirrors::both) found = at::maximum(found, best(spectra, of_templates));
    highest.index_copy_(1, there, found);
  }
  return kept.defined() ? highest.masked_fill(kept.logical_not(), -std::numeric_limits<double>::infinity()) : highest;
}

Tensor FourierScorer::curves(const Tensor& spectra, const Tensor& index) const {
  const auto count = index.size(0), each = index.size(1), mirrors = std::int64_t{setup_.mirrors == Mirrors::both ? 2 : 1};
  auto curves = at::empty({count * each, mirrors, nphi_}, setup_.images);
  const auto numbers = index.flatten().cpu(), image_of = at::arange(count, torch::kInt64).repeat_interleave(each);
  // Two transforms and their product for each, in a quarter of the budget for templates and one for images.
  const auto at_once = std::max<std::int64_t>(1, templates_at_once_ / 2);
  for (std::int64_t first = 0; first < count * each; first += at_once) {
    const auto last = std::min(first + at_once, count * each);
    const auto of_templates = at::fft_rfft(scaled_maps(numbers.slice(0, first, last)));  // (count, nr, frequencies)
    const auto of_images = spectra.index_select(1, image_of.slice(0, first, last).to(spectra.device())).permute({1, 2, 0});
    auto products = (of_images * of_templates.conj()).sum(1).unsqueeze(1);
    if (mirrors == 2) products = at::cat({products, (of_images * of_templates).sum(1).unsqueeze(1)}, 1);
    curves.slice(0, first, last).copy_(at::fft_irfft(products, nphi_));
  }
  return curves.view({count, each, mirrors, nphi_});
}

}  // namespace

std::unique_ptr<RotationScorer> fourier_scorer(const PolarTemplates& templates, const MatchScaling& scaling,
                                               const ScorerSetup& setup) {
  return std::make_unique<FourierScorer>(templates, scaling, setup);
}

void check_budget(std::int64_t budget, std::int64_t needed, const PolarTemplates& templates) {
  if (budget >= needed) return;
  throw ValueError(fmt::format("a memory budget of {} bytes; an image and a template of {} x {} bins need {}: give more", budget,
                               templates.nr(), templates.nphi(), needed));
}

}  // namespace mpol
