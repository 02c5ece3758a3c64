#include <mpol_cpp/proximal/wavelet_dictionary.h>

#include <cmath>

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/wavelet/daubechies.h>
#include <mpol_cpp/ops/wavelet/wavelet_transform.h>

namespace mpol {
namespace {

void check_levels(std::int64_t levels) {
  if (levels < 1) throw ValueError(fmt::format("a wavelet transform of {} levels is none: give 1 or more", levels));
}

void check_is_cube(const Tensor& x) {
  if (x.dim() < 3) throw ShapeError(fmt::format("wavelets need (…, channels, rows, columns), not {}", x.sizes().vec()));
}

}  // namespace

std::vector<double> daubechies_filter(std::int64_t vanishing_moments) { return ops::daubechies_filters(vanishing_moments).low; }

WaveletTransform::WaveletTransform(std::int64_t vanishing_moments, std::int64_t levels)
    : moments_({vanishing_moments}), levels_(levels) {
  check_levels(levels);
  daubechies_filter(vanishing_moments);  // refuses what it has none for
}

Tensor WaveletTransform::apply(const Tensor& x) const {
  check_is_cube(x);
  return ops::wavelet_analysis(x, moments_, levels_)[0];
}

Tensor WaveletTransform::adjoint(const Tensor& y) const {
  check_is_cube(y);
  return ops::wavelet_synthesis(y.unsqueeze(0), moments_, levels_);
}

SaraDictionary::SaraDictionary(const SaraOptions& options) : levels_(options.levels) {
  check_levels(options.levels);
  daubechies_filter(options.most_moments);  // refuses what it has none for
  for (std::int64_t n = 1; n <= options.most_moments; ++n) moments_.push_back(n);
}

Tensor SaraDictionary::apply(const Tensor& x) const {
  check_is_cube(x);
  std::vector<Tensor> parts = {x};
  for (const auto& part : ops::wavelet_analysis(x, moments_, levels_).unbind(0)) parts.push_back(part);
  return at::cat(parts, -3) / std::sqrt(static_cast<double>(bases()));
}

Tensor SaraDictionary::adjoint(const Tensor& y) const {
  check_is_cube(y);
  auto parts = y.chunk(bases(), -3);
  const auto of_dirac = parts.front();
  parts.erase(parts.begin());
  return (of_dirac + ops::wavelet_synthesis(at::stack(parts), moments_, levels_)) / std::sqrt(static_cast<double>(bases()));
}

}  // namespace mpol
