#include <mpol_cpp/analysis/matching/template_matching.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/matching/rotation_scorer.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

/// Images that share the templates which any of them keeps.
constexpr std::int64_t images_that_share = 16;
/// Images that a thread works on at a time.
constexpr std::int64_t images_of_a_thread = 4;

void check_maps(const Tensor& maps, const PolarTemplates& templates) {
  if (maps.dim() < 2 || maps.numel() == 0 || maps.size(-2) != templates.nr() || maps.size(-1) != templates.nphi() ||
      (maps.scalar_type() != torch::kFloat32 && maps.scalar_type() != torch::kFloat64)) {
    throw ShapeError(fmt::format("maps of shape ({}) of {}: expected (…, {}, {}) as the templates, of float32 or float64",
                                 fmt::join(maps.sizes(), ", "), c10::toString(maps.scalar_type()), templates.nr(),
                                 templates.nphi()));
  }
  // One pass where all is well: the sum is finite then, but for numbers near the end of their range.
  if (!std::isfinite(maps.sum().item<double>()) && !maps.isfinite().all().item<bool>()) {
    throw DataError("maps to match with values that are not finite: replace them, by 0 where nothing is known");
  }
}

void check_options(const MatchOptions& options, const PolarTemplates& templates) {
  const auto refuse = [](const std::string& what) { throw ValueError(what); };
  if (options.n_best() < 1) refuse(fmt::format("n_best {} of a match: must be at least 1", options.n_best()));
  if (options.keep() && *options.keep() < 1) refuse(fmt::format("{} templates to keep: must be at least 1", *options.keep()));
  if (!(options.keep_fraction() > 0 && options.keep_fraction() <= 1)) {
    refuse(fmt::format("a fraction of {} of templates to keep: must be above 0, and 1 at most", options.keep_fraction()));
  }
  if (!std::isfinite(options.first_azimuth())) refuse("first_azimuth of a match is not finite");
  const auto& coarse = options.coarse_weights();
  if (!coarse.defined()) return;
  if (coarse.dim() != 1 || coarse.size(0) != templates.nr()) {
    throw ShapeError(fmt::format("coarse_weights of shape ({}) for {} bins in radius: expected one for each",
                                 fmt::join(coarse.sizes(), ", "), templates.nr()));
  }
  if (!coarse.isfinite().all().item<bool>()) refuse("coarse_weights of a match that are not finite");
}

std::unique_ptr<RotationScorer> make_scorer(const Tensor& maps, const PolarTemplates& templates, const MatchScaling& scaling,
                                            const MatchOptions& options) {
  const ScorerSetup setup{maps.options().requires_grad(false), options.mirrors(), options.memory_budget()};
  const bool by_points = templates.points() != nullptr && maps.device().is_cpu();
  return by_points ? point_scorer(templates, scaling, setup) : fourier_scorer(templates, scaling, setup);
}

/// Templates that the options leave of each image for the full search.
std::int64_t kept_templates(const MatchOptions& options, std::int64_t size, std::int64_t n_best) {
  const auto fraction = std::llround(options.keep_fraction() * static_cast<double>(size));
  return std::clamp<std::int64_t>(options.keep().value_or(fraction), n_best, size);
}

/// The first of the angles whose score is the highest to rounding: (…, nphi) to (…).
Tensor first_highest(const Tensor& curves) {
  const double epsilon = curves.scalar_type() == torch::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                                 : static_cast<double>(std::numeric_limits<float>::epsilon());
  const auto least = curves.amax(-1, true) - 16 * epsilon * curves.abs().amax(-1, true);
  const auto bins = at::arange(curves.size(-1), curves.options().dtype(torch::kInt64));
  return at::where(curves >= least, bins, curves.size(-1)).amin(-1);
}

/// How far the top of the parabola through a bin and its neighbours lies from it, in bins.
Tensor top_of_parabola(const Tensor& curves, const Tensor& bin) {
  const auto nphi = curves.size(-1);
  const auto at = [&](std::int64_t offset) {
    return curves.gather(-1, (bin + offset + nphi).remainder(nphi).unsqueeze(-1)).squeeze(-1).to(torch::kFloat64);
  };
  const auto before = at(-1), here = at(0), after = at(1), bend = before - 2 * here + after;
  return at::where(bend < 0, (before - after) / (2 * bend), at::zeros({}, bend.options())).clamp(-0.5, 0.5);
}

/// Angles and mirrors of templates from the scores of all angles. @param curves  (count, k, mirrors, nphi)
void settle_angles(const Tensor& curves, const MatchOptions& options, Matches& matches) {
  const auto nphi = curves.size(3);
  auto joined = curves.flatten(2);  // of the mirrored template behind the others: it must be better by more than rounding
  const auto place = first_highest(joined);
  const auto mirrored = place >= nphi;
  const auto bin = place.remainder(nphi);
  auto angle = bin.to(torch::kFloat64) + mirrored.to(torch::kFloat64) * (2 * options.first_azimuth());
  if (options.angles() == AngleSteps::parabola) {
    const auto which = mirrored.to(torch::kInt64).unsqueeze(-1).unsqueeze(-1).expand({-1, -1, 1, nphi});
    angle = angle + top_of_parabola(curves.gather(2, which).squeeze(2), bin);
  }
  matches.mirrored = mirrored;
  matches.angle = (angle.remainder(static_cast<double>(nphi))) * (2 * units::pi / static_cast<double>(nphi));
}

/// Matches of images that fit the budget together. @param maps  (count, nr, nphi)
Matches match_some(const Tensor& maps, const RotationScorer& scorer, const MatchScaling& scaling, const Tensor& profiles,
                   const MatchOptions& options, std::int64_t n_best) {
  const auto images = scaling.images(maps);
  const auto size = profiles.size(0), keep = kept_templates(options, size, n_best);
  Tensor kept;
  if (keep < size) {
    auto profile = images.sum(2);
    if (options.coarse_weights().defined()) profile = profile * options.coarse_weights().to(profile.options());
    const auto best = std::get<1>(at::topk(at::matmul(profile, profiles.t()), keep, -1));
    kept = at::zeros({maps.size(0), size}, maps.options().dtype(torch::kBool)).scatter_(1, best, true);
  }
  const auto prepared = scorer.prepared(images);
  const auto [score, index] = at::topk(scorer.highest(prepared, kept, n_best), n_best, -1);
  Matches matches{index, {}, {}, score};
  settle_angles(scorer.curves(prepared, index), options, matches);
  return matches;
}

}  // namespace

Matches match_templates(const Tensor& maps, const PolarTemplates& templates, const MatchOptions& options) {
  check_maps(maps, templates);
  check_options(options, templates);
  const auto nr = templates.nr(), nphi = templates.nphi(), n_best = std::min(options.n_best(), templates.size());
  const MatchScaling scaling(options.score(), options.weights(), nr, nphi);
  const auto scorer = make_scorer(maps, templates, scaling, options);
  const auto profiles = scorer->profiles();
  const auto flat = maps.detach().reshape({-1, nr, nphi});
  const auto count = flat.size(0);
  auto at_once = scorer->images_at_once();
  if (kept_templates(options, templates.size(), n_best) < templates.size()) at_once = std::min(at_once, images_that_share);
  const auto empty = [&](torch::Dtype dtype) { return at::empty({count, n_best}, flat.options().dtype(dtype)); };
  Matches all{empty(torch::kInt64), empty(torch::kFloat64), empty(torch::kBool), empty(flat.scalar_type())};
  const auto match_block = [&](std::int64_t first) {
    const auto last = std::min(first + at_once, count);
    const auto some = match_some(flat.slice(0, first, last), *scorer, scaling, profiles, options, n_best);
    for (const auto part : {&Matches::index, &Matches::angle, &Matches::mirrored, &Matches::score})
      (all.*part).slice(0, first, last).copy_(some.*part);
  };
  // Enough images for all threads: each takes some from beginning to end, which stay in its cache, and nobody waits in between.
  const auto threads = std::int64_t{at::get_num_threads()};
  if (scorer->images_on_one_thread() && threads > 1 && count > 2 * threads) {
    at_once = std::clamp<std::int64_t>(at_once / threads, 1, images_of_a_thread);
    const auto blocks = (count + at_once - 1) / at_once;
    at::parallel_for(0, blocks, 1, [&](std::int64_t from, std::int64_t to) {
      const at::NoGradGuard none;
      for (auto block = from; block < to; ++block) match_block(block * at_once);
    });
  } else {
    for (std::int64_t first = 0; first < count; first += at_once) match_block(first);
  }
  auto shape = maps.sizes().slice(0, maps.dim() - 2).vec();
  shape.push_back(n_best);
  for (const auto part : {&Matches::index, &Matches::angle, &Matches::mirrored, &Matches::score})
    all.*part = (all.*part).view(shape);
  return all;
}

Tensor rotation_scores(const Tensor& maps, const PolarTemplates& templates, const Tensor& index, const MatchOptions& options) {
  check_maps(maps, templates);
  check_options(options, templates);
  if (index.sizes() != maps.sizes().slice(0, maps.dim() - 2) || index.scalar_type() != torch::kInt64) {
    throw ShapeError(fmt::format("numbers of templates of shape ({}) for maps of ({}): expected one for each, int64",
                                 fmt::join(index.sizes(), ", "), fmt::join(maps.sizes(), ", ")));
  }
  const auto lowest = index.min().item<std::int64_t>(), highest = index.max().item<std::int64_t>();
  if (lowest < 0 || highest >= templates.size()) {
    throw ValueError(
        fmt::format("template {} of a library of {}, counted from 0", lowest < 0 ? lowest : highest, templates.size()));
  }
  const auto nr = templates.nr(), nphi = templates.nphi();
  const MatchScaling scaling(options.score(), options.weights(), nr, nphi);
  const auto scorer = make_scorer(maps, templates, scaling, options);
  const auto flat = maps.detach().reshape({-1, nr, nphi}), numbers = index.reshape({-1, 1});
  std::vector<Tensor> parts;
  for (std::int64_t first = 0; first < flat.size(0); first += scorer->images_at_once()) {
    const auto last = std::min(first + scorer->images_at_once(), flat.size(0));
    const auto prepared = scorer->prepared(scaling.images(flat.slice(0, first, last)));
    parts.push_back(scorer->curves(prepared, numbers.slice(0, first, last)).squeeze(1));
  }
  auto shape = index.sizes().vec();
  shape.insert(shape.end(), {options.mirrors() == Mirrors::both ? 2 : 1, nphi});
  return at::cat(parts).view(shape);
}

}  // namespace mpol
