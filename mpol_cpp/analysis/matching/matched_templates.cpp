#include <cmath>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/matching/template_matching.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// factor * map + level, both by least squares. @param weights  (nr, 1) float64  @param lifted  whether the level is free
Tensor scaled_to(const Tensor& image, const Tensor& map, const Tensor& weights, bool lifted) {
  const auto i = image.to(torch::kFloat64), t = map.to(torch::kFloat64);
  const auto all = (weights.sum() * static_cast<double>(map.size(1)));
  const auto mean = [&](const Tensor& values) { return (values * weights).sum() / all; };
  const auto of_image = lifted ? mean(i) : at::zeros({}, i.options()), of_map = lifted ? mean(t) : at::zeros({}, i.options());
  const auto centered = t - of_map;
  const auto squares = mean(centered.square());
  const auto factor = mean(centered * (i - of_image)) / squares.masked_fill(squares == 0, 1);
  return (factor * centered + of_image).to(image.scalar_type());
}

}  // namespace

Tensor matched_templates(const Tensor& maps, const PolarTemplates& templates, const Matches& matches,
                         const MatchOptions& options) {
  const auto nr = templates.nr(), nphi = templates.nphi();
  if (maps.dim() < 2 || maps.size(-2) != nr || maps.size(-1) != nphi ||
      matches.index.sizes().slice(0, matches.index.dim() - 1) != maps.sizes().slice(0, maps.dim() - 2)) {
    throw ShapeError(fmt::format("matches of shape ({}) of maps of ({}): expected those of the same maps",
                                 fmt::join(matches.index.sizes(), ", "), fmt::join(maps.sizes(), ", ")));
  }
  const auto images = maps.detach().reshape({-1, nr, nphi});
  const auto best = [](const Tensor& of_matches) { return of_matches.select(-1, 0).flatten().cpu(); };
  const auto index = best(matches.index), angle = best(matches.angle), mirrored = best(matches.mirrored);
  const auto weights = (options.weights().defined() ? options.weights() : at::ones({nr}, torch::kFloat64))
                           .to(maps.device(), torch::kFloat64)
                           .view({-1, 1});
  auto placed = at::empty_like(images);
  for (std::int64_t i = 0; i < images.size(0); ++i) {
    const bool mirror = mirrored[i].item<bool>();
    const double turn = angle[i].item<double>() * static_cast<double>(nphi) / (2 * units::pi);
    const auto bins = std::llround(turn - (mirror ? 2 * options.first_azimuth() : 0));
    const auto map = templates.maps(index.slice(0, i, i + 1), images.options())[0];
    // Bin k of the mirrored template is its bin -k, which is one on in the flipped one.
    const auto turned = mirror ? at::roll(map.flip(1), bins + 1, 1) : at::roll(map, bins, 1);
    placed[i].copy_(scaled_to(images[i], turned, weights, options.score() == MatchScore::correlation));
  }
  return placed.view(maps.sizes());
}

}  // namespace mpol
