#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/softplus.h>

#include <mpol_cpp/ops/fused/cpu/fused_pipeline.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/fft/real_fft.h>
#include <mpol_cpp/regularizers/regularizers.h>

#include "compare.h"
#include "random.h"

namespace mpol::testing {

/// Cells of the half plane with data, some of them twice.
struct Samples {
  Tensor cells, data, weights;

  Samples(std::int64_t npix, std::int64_t nchan, double fraction, std::uint64_t seed) {
    const auto places = nchan * npix * (npix / 2 + 1);
    const auto once = (uniform({places}, torch::kFloat64, seed) < fraction).nonzero().squeeze(1);
    const auto again = once.index({uniform({once.size(0)}, torch::kFloat64, seed + 1) < 0.2});
    cells = at::cat({once, again});
    data = normal({cells.size(0)}, torch::kComplexDouble, seed + 2);
    weights = uniform({cells.size(0)}, torch::kFloat64, seed + 3) + 0.5;
  }
  /// Without the rows and columns of the half plane that `keep` maps to false.
  void only(const std::function<Tensor(const Tensor& flat)>& keep) {
    const auto kept = keep(cells);
    cells = cells.index({kept}), data = data.index({kept}), weights = weights.index({kept});
  }
};

inline constexpr double cell_area = 0.3;

/// Base pixels of which some are far below 0, and some far above.
inline Tensor random_base(const ops::FusedSettings& settings, torch::Dtype dtype) {
  return (normal({settings.problems, settings.nchan, settings.npix, settings.npix}, torch::kFloat64, 17) * 3 - 1).to(dtype);
}

/// chi^2 of each problem at the cells.
inline Tensor chi_squared_of(const Tensor& image, const Samples& samples) {
  const auto model = ops::half_plane_fft(image).flatten(-3).index_select(-1, samples.cells) * cell_area;
  return ((model - samples.data).abs().square() * samples.weights).sum({-1});
}

/// The same as a likelihood of images, by autograd in float64.
inline ops::ImageLikelihood image_likelihood(const Samples& samples) {
  return [samples](const Tensor& images, Tensor& gradient) {
    const auto precise = images.to(torch::kFloat64).contiguous();
    gradient.copy_(gradient_of([&](const Tensor& x) { return chi_squared_of(x, samples); }, precise));
    return chi_squared_of(precise, samples);
  };
}

enum class LikelihoodOf { cells, images };

/// The objective by autograd, in float64.
inline Tensor reference(const Tensor& base, const Samples& samples, const ops::FusedSettings& settings) {
  const auto& terms = settings.terms;
  const auto image = ops::hann(at::softplus(base));
  const auto n = settings.npix;
  auto total = settings.likelihood_scale * chi_squared_of(image, samples);
  const auto corner = image.narrow(-1, 0, n - 1).narrow(-2, 0, n - 1);
  const auto squares = (image.narrow(-1, 1, n - 1).narrow(-2, 0, n - 1) - corner).square() +
                       (image.narrow(-1, 0, n - 1).narrow(-2, 1, n - 1) - corner).square();
  const auto cube_sum = [](const Tensor& cube) { return cube.sum({-3, -2, -1}); };
  const auto weight = [&](TermKind kind) { return terms.weight(kind); };
  const auto epsilon = [&](TermKind kind) { return terms.settings(kind)[0]; };
  const auto* entropy = terms.settings(TermKind::entropy);
  total = total + weight(TermKind::sparsity) * cube_sum(image) + weight(TermKind::tsv) * cube_sum(squares) +
          weight(TermKind::tv_image) * cube_sum((squares + epsilon(TermKind::tv_image)).sqrt()) +
          weight(TermKind::entropy) / entropy[1] * cube_sum(image * (image / entropy[0]).log());
  if (weight(TermKind::psd) > 0) {
    const auto power = (ops::half_plane_fft(image).abs() * cell_area).square() * settings.inverse_power;
    total = total + weight(TermKind::psd) *
                        (2 * cube_sum(power) - cube_sum(power.narrow(-1, 0, 1)) - cube_sum(power.narrow(-1, n / 2, 1)));
  }
  const auto step = image.narrow(-3, 1, image.size(-3) - 1) - image.narrow(-3, 0, image.size(-3) - 1);
  total = total + weight(TermKind::tv_channel) * cube_sum((step.square() + epsilon(TermKind::tv_channel)).sqrt());
  const auto spectra = image.square().sum({-3}, /*keepdim=*/true) + epsilon(TermKind::group_sparsity);
  total = total + weight(TermKind::group_sparsity) * cube_sum(spectra.sqrt());
  if (image.size(-3) > 2) {
    const auto bends = step.narrow(-3, 1, step.size(-3) - 1) - step.narrow(-3, 0, step.size(-3) - 1);
    total = total + weight(TermKind::spectral_smoothness) * cube_sum(bends.square());
  }
  total = total + weight(TermKind::tv_slope) * losses::tv_slope(image, epsilon(TermKind::tv_slope));
  for (const auto edge : {0L, n - 1}) {
    total = total + weight(TermKind::edge_clamp) *
                        (image.select(-2, edge).square().sum({-2, -1}) + image.select(-1, edge).square().sum({-2, -1}));
  }
  return total;
}

inline double total_of(const ops::FusedValues& values, const ops::FusedSettings& settings) {
  double total = settings.likelihood_scale * values.chi_squared;
  for (const auto kind : all_regularizers()) total += settings.terms.weight(kind) * values.of(kind);
  return total;
}

/// The regularizers that the fused step works out.
inline std::vector<TermKind> fused_regularizers() {
  auto kinds = all_regularizers();
  std::erase_if(kinds, [](TermKind kind) { return !is_fused(kind); });
  return kinds;
}

inline ops::FusedTerms all_terms() {
  ops::FusedTerms terms;
  terms.weight(TermKind::sparsity) = 0.3, terms.weight(TermKind::tv_image) = 0.2, terms.weight(TermKind::tsv) = 0.11;
  terms.weight(TermKind::entropy) = 0.4, terms.weight(TermKind::tv_channel) = 0.25, terms.weight(TermKind::edge_clamp) = 0.17;
  terms.weight(TermKind::psd) = 0.02, terms.weight(TermKind::group_sparsity) = 0.35;
  terms.weight(TermKind::spectral_smoothness) = 0.13, terms.weight(TermKind::tv_slope) = 0.21;
  terms.settings(TermKind::entropy)[0] = 0.02, terms.settings(TermKind::entropy)[1] = 3;
  terms.settings(TermKind::tv_image)[0] = 1e-3, terms.settings(TermKind::tv_channel)[0] = 2e-3;
  terms.settings(TermKind::group_sparsity)[0] = 3e-3, terms.settings(TermKind::tv_slope)[0] = 2e-3;
  return terms;
}

inline ops::FusedSettings settings_for(std::int64_t npix, std::int64_t nchan, const ops::FusedTerms& terms) {
  ops::FusedSettings settings;
  settings.npix = npix, settings.nchan = nchan, settings.problems = 1, settings.cell_area = cell_area;
  settings.likelihood_scale = 1e-2, settings.terms = terms;
  settings.inverse_power = uniform({npix, npix / 2 + 1}, torch::kFloat64, 16) + 0.1;
  return settings;
}

}  // namespace mpol::testing
