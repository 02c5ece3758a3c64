#include <mpol_cpp/proximal/wavelet_dictionary.h>

#include <cmath>
#include <complex>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/roll.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

using Complex = std::complex<long double>;

constexpr std::int64_t most_vanishing_moments = 8;

/// The roots of sum_k coefficients[k] y^k, all at once.
/// Source: Durand 1960, Kerner 1966.
std::vector<Complex> roots_of(const std::vector<long double>& coefficients) {
  const auto degree = coefficients.size() - 1;
  std::vector<Complex> roots;
  for (std::size_t i = 0; i < degree; ++i) roots.push_back(std::pow(Complex(0.4L, 0.9L), static_cast<int>(i)));
  constexpr int enough = 500;  // they double their digits each time once they are near
  for (int step = 0; step < enough; ++step) {
    for (std::size_t i = 0; i < degree; ++i) {
      Complex value = coefficients[degree], others = coefficients[degree];
      for (auto k = degree; k-- > 0;) value = value * roots[i] + coefficients[k];
      for (std::size_t j = 0; j < degree; ++j) {
        if (j != i) others *= roots[i] - roots[j];
      }
      roots[i] -= value / others;
    }
  }
  return roots;
}

/// One level along the last dimension: (…, n) to (…, n), low frequencies in the first half.
Tensor split(const Tensor& x, const Tensor& filters) {
  const auto pairs = x.unflatten(-1, {x.size(-1) / 2, 2});
  std::vector<Tensor> neighbors;
  for (std::int64_t k = 0; k < filters.size(0) / 2; ++k) neighbors.push_back(k == 0 ? pairs : at::roll(pairs, {-k}, {-2}));
  return at::cat(neighbors, -1).matmul(filters).transpose(-2, -1).flatten(-2, -1);
}

/// The adjoint, and inverse, of split().
Tensor join(const Tensor& y, const Tensor& filters) {
  const auto taken = y.unflatten(-1, {2, y.size(-1) / 2}).transpose(-2, -1).matmul(filters.transpose(0, 1));
  Tensor pairs;
  for (std::int64_t k = 0; k < filters.size(0) / 2; ++k) {
    const auto part = taken.narrow(-1, 2 * k, 2);
    pairs = k == 0 ? part : pairs + at::roll(part, {k}, {-2});
  }
  return pairs.flatten(-2, -1);
}

}  // namespace

std::vector<double> daubechies_filter(std::int64_t vanishing_moments) {
  const auto n = vanishing_moments;
  if (n < 1 || n > most_vanishing_moments) {
    throw ValueError(
        fmt::format("there is no Daubechies filter of {} vanishing moments here: give 1 to {}", n, most_vanishing_moments));
  }
  std::vector<long double> polynomial = {1};
  for (std::int64_t k = 1; k < n; ++k)
    polynomial.push_back(polynomial.back() * static_cast<long double>(n - 1 + k) / static_cast<long double>(k));
  std::vector<Complex> filter = {1};
  const auto multiply = [&](const Complex& root) {  // by (z - root)
    std::vector<Complex> product(filter.size() + 1);
    for (std::size_t i = 0; i < filter.size(); ++i) {
      product[i] += filter[i];
      product[i + 1] -= root * filter[i];
    }
    filter = std::move(product);
  };
  for (std::int64_t k = 0; k < n; ++k) multiply(-1);
  for (const auto& y : roots_of(polynomial)) {
    const Complex half = Complex(1) - Complex(2) * y, root = std::sqrt(half * half - Complex(1));
    const Complex one = half + root, other = half - root;
    multiply(std::abs(one) < 1 ? one : other);
  }
  long double sum = 0;
  for (const auto& value : filter) sum += value.real();
  std::vector<double> result;
  for (const auto& value : filter) result.push_back(static_cast<double>(value.real() * std::sqrt(2.0L) / sum));
  return result;
}

WaveletTransform::WaveletTransform(std::int64_t vanishing_moments, std::int64_t levels) : levels_(levels) {
  if (levels < 1) throw ValueError(fmt::format("a wavelet transform of {} levels is none: give 1 or more", levels));
  const auto low = daubechies_filter(vanishing_moments);
  const auto count = low.size();
  filters_ = at::empty({static_cast<std::int64_t>(count), 2}, torch::kFloat64);
  auto* value = filters_.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < count; ++i) {
    *value++ = low[i];
    *value++ = (i % 2 == 0 ? 1 : -1) * low[count - 1 - i];
  }
}

Tensor WaveletTransform::filters_like(const Tensor& x) const {
  const auto block = std::int64_t{1} << levels_;
  if (x.dim() < 3 || x.size(-1) % block != 0 || x.size(-2) % block != 0) {
    throw ShapeError(
        fmt::format("an image {} cannot be split in halves {} times: rows and columns must be multiples of {}, or take "
                    "fewer levels",
                    x.sizes().vec(), levels_, block));
  }
  return filters_.to(x.device(), x.scalar_type());
}

Tensor WaveletTransform::apply(const Tensor& x) const {
  const auto filters = filters_like(x);
  auto y = x.clone(at::MemoryFormat::Contiguous);
  for (std::int64_t level = 0; level < levels_; ++level) {
    auto low = y.narrow(-2, 0, x.size(-2) >> level).narrow(-1, 0, x.size(-1) >> level);
    low.copy_(split(split(low, filters).transpose(-2, -1), filters).transpose(-2, -1));
  }
  return y;
}

Tensor WaveletTransform::adjoint(const Tensor& y) const {
  const auto filters = filters_like(y);
  auto x = y.clone(at::MemoryFormat::Contiguous);
  for (std::int64_t level = levels_; level-- > 0;) {
    auto low = x.narrow(-2, 0, y.size(-2) >> level).narrow(-1, 0, y.size(-1) >> level);
    low.copy_(join(join(low.transpose(-2, -1), filters).transpose(-2, -1), filters));
  }
  return x;
}

SaraDictionary::SaraDictionary(const SaraOptions& options) {
  for (std::int64_t n = 1; n <= options.most_moments; ++n) wavelets_.emplace_back(n, options.levels);
  if (wavelets_.empty()) daubechies_filter(options.most_moments);  // refuses it
}

Tensor SaraDictionary::apply(const Tensor& x) const {
  std::vector<Tensor> parts = {x};
  for (const auto& wavelet : wavelets_) parts.push_back(wavelet.apply(x));
  return at::cat(parts, -3) / std::sqrt(static_cast<double>(bases()));
}

Tensor SaraDictionary::adjoint(const Tensor& y) const {
  const auto parts = y.chunk(bases(), -3);
  auto sum = parts[0];
  for (std::size_t i = 0; i < wavelets_.size(); ++i) sum = sum + wavelets_[i].adjoint(parts[i + 1]);
  return sum / std::sqrt(static_cast<double>(bases()));
}

}  // namespace mpol
