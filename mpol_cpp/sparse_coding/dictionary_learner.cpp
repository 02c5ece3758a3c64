#include <mpol_cpp/sparse_coding/dictionary_learner.h>

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

DictionaryLearningOptions::DictionaryLearningOptions(double lambda) : coding(lambda) {
  coding.most_iterations = 100;
  coding.balance.period = 10;
  coding.balance.scaling = AdmmOptions::Balance::Scaling::constant;
  coding.balance.largest_factor = 2;
  coding.balance.ratio = 10;
  coding.balance.target = 1;
}

DictionaryLearner::DictionaryLearner(const Tensor& filters, DictionaryLearningOptions options) : options_(std::move(options)) {
  const auto is_positive = [](double value) { return value > 0 && std::isfinite(value); };
  if (!is_positive(options_.step_numerator) || !is_positive(options_.step_offset)) {
    throw ValueError(fmt::format("dictionary learning: steps of {}/(k + {}); both numbers must be finite and above 0",
                                 options_.step_numerator, options_.step_offset));
  }
  if (options_.coding.mask.defined()) throw ValueError("dictionary learning: a mask is not known here: leave it out");
  if (filters.dim() != 3 && filters.dim() != 4) {
    throw ShapeError(fmt::format("{} are no filters: give (filters, h, w) or (filters, channels, h, w)", filters.sizes().vec()));
  }
  const torch::NoGradGuard no_grad;
  filters_ = projected(filters);
}

Tensor DictionaryLearner::projected(const Tensor& filters) const {
  auto own = options_.mean == DictionaryLearningOptions::Mean::remove ? filters - filters.mean({-2, -1}, /*keepdim=*/true)
                                                                      : filters.clone();
  const auto lengths = own.square().flatten(1).sum(-1).sqrt();
  std::vector<std::int64_t> shape(static_cast<std::size_t>(own.dim()), 1);
  shape[0] = -1;
  return own / at::where(lengths > 0, lengths, at::scalar_tensor(1, lengths.options())).view(shape);
}

SolverReport DictionaryLearner::learn(const Tensor& image) {
  const torch::NoGradGuard no_grad;
  ConvolutionalCoder coder(filters_, image, options_.coding);
  const auto report = coder.solve();
  const auto coefficients = coder.coefficients();
  const auto left = at::fft_rfft2(coder.bank().apply(coefficients) - image).unsqueeze(-3);  // (…, C, 1, rows, columns)
  auto slope = at::fft_rfft2(coefficients).conj() * left;                                   // (…, C, M, rows, columns)
  const bool shares_maps = filters_.dim() == 4;
  const auto problems = slope.dim() - (shares_maps ? 4 : 3);
  if (problems > 0) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(problems));
    std::iota(dims.begin(), dims.end(), std::int64_t{0});
    slope = slope.sum(dims);
  }
  auto gradient = at::fft_irfft2(slope, at::IntArrayRef{image.size(-2), image.size(-1)});
  if (shares_maps) gradient = gradient.transpose(0, 1);
  const double step = options_.step_numerator / (static_cast<double>(images_) + options_.step_offset);
  filters_ = projected(filters_ - step * gradient.narrow(-2, 0, filters_.size(-2)).narrow(-1, 0, filters_.size(-1)));
  ++images_;
  return report;
}

NamedTensors DictionaryLearner::state() const {
  return {{"filters", filters_.clone()}, {"images", at::scalar_tensor(images_, torch::kInt64)}};
}

void DictionaryLearner::load_state(const NamedTensors& state) {
  const auto filters = state.find("filters"), images = state.find("images");
  if (filters == state.end() || images == state.end() || filters->second.sizes() != filters_.sizes() ||
      filters->second.scalar_type() != filters_.scalar_type()) {
    throw FileError(fmt::format("the saved dictionary is not of filters {} of {}", filters_.sizes().vec(),
                                c10::toString(filters_.scalar_type())));
  }
  filters_ = filters->second.to(filters_.device()).clone();
  images_ = images->second.item<std::int64_t>();
}

}  // namespace mpol
