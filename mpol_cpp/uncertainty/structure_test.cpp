#include <mpol_cpp/uncertainty/structure_test.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/special_gammaincc.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/solvers/convex_objective.h>
#include <mpol_cpp/solvers/pogm.h>
#include <mpol_cpp/uncertainty/bootstrap.h>
#include <mpol_cpp/uncertainty/harmonic_fill.h>
#include <mpol_cpp/uncertainty/tilted_function.h>

namespace mpol {
namespace {

constexpr double part_of_bound = 1e-2;     // to which F of a fit is right
constexpr double contrast_of_none = 0.05;  // D is then within its square of the largest
constexpr double most_growth = 4;          // of m from one fit to the next

double overlap(const Tensor& a, const Tensor& b) { return (a * b).sum(torch::kFloat64).item<double>(); }

/// The part of a Gamma distribution of some shape, scale 1, beyond a number.
double part_beyond(double shape, double number) {
  return at::special_gammaincc(at::scalar_tensor(shape, torch::kFloat64), at::scalar_tensor(number, torch::kFloat64))
      .item<double>();
}

/// F in true units, beside its value at the optimum.
class TrueExcess {
 public:
  TrueExcess(const std::shared_ptr<GriddedNetImpl>& model, const Objective& objective, const StructureTestOptions& options)
      : options_(options),
        factor_(objective.normalizer() / (options.noise_factor() * options.noise_factor())),
        precision_(part_of_bound * highest_density_bound(1, options.level()) / factor_),
        function_(model, objective),
        tilted_(function_) {
    optimum_ = function_.images().clone();
    fit(optimum_, {});
    slope_ = at::empty_like(optimum_);
    simple_ = function_.evaluate(optimum_, slope_).front();
    at_optimum_ = factor_ * function_.losses().front();
  }

  double at_optimum() const { return at_optimum_; }
  const Tensor& optimum() const { return optimum_; }

  /// By slopes, as F is quadratic but for what the proximal map knows: F itself has too few digits in float32.
  double of(const Tensor& images) {
    auto slope = at::empty_like(images);
    const double simple = function_.evaluate(images, slope).front();
    return factor_ * (overlap(images - optimum_, (slope + slope_) / 2) + simple - simple_);
  }

  /// Moves the images to the minimum of F + <push, images>.
  void fit(Tensor& images, const Tensor& push) {
    tilted_.set_tilt(push.defined() ? push / -factor_ : Tensor());
    Pogm pogm(tilted_, images, {.curvatures = curvatures_, .most_passes = passes_to_settle});
    settle(
        pogm, options_.most_iterations(), 1.0, [this] { return std::vector<double>{precision_}; },
        [this] {
          if (options_.on_iteration()) options_.on_iteration()();
          return false;
        });
    curvatures_ = pogm.curvatures();
  }

 private:
  const StructureTestOptions& options_;
  double factor_, precision_;  // F over a fit's loss, and how far a loss may be off
  ConvexObjective function_;
  TiltedFunction tilted_;
  std::vector<double> curvatures_;
  Tensor optimum_, slope_;
  double simple_ = 0, at_optimum_ = 0;
};

/// The m for which the contrast is 0, between those that are known to be too small and too large.
class ZeroContrast {
 public:
  explicit ZeroContrast(double first) : m_(first) {}
  double m() const { return m_; }

  void learn(double contrast) {
    const bool above = contrast > 0;
    (above ? low_ : high_) = {m_, contrast};
    if (above == was_above_) (above ? high_ : low_).contrast /= 2;  // the Illinois rule: neither end stays for long
    was_above_ = above;
    if (std::isinf(high_.m)) {  // of a quadratic F the contrast falls along a line from 1
      m_ = std::min(most_growth * m_, m_ / std::max(1 - contrast, 1 / most_growth));
      return;
    }
    const double width = high_.m - low_.m, crossing = low_.m + width * low_.contrast / (low_.contrast - high_.contrast);
    m_ = std::clamp(crossing, low_.m + 0.05 * width, high_.m - 0.05 * width);
  }

 private:
  struct Point {
    double m, contrast;
  };
  double m_;
  std::optional<bool> was_above_;
  Point low_{0, 1}, high_{std::numeric_limits<double>::infinity(), 0};
};

void check_structure_options(const StructureTestOptions& options) {
  if (!(options.noise_factor() > 0) || !std::isfinite(options.noise_factor()))
    throw ValueError(fmt::format("the noise factor is {}; it must be above 0", options.noise_factor()));
  if (options.most_fits() < 1) throw ValueError(fmt::format("{} fits judge nothing: allow 1 at least", options.most_fits()));
  constexpr std::int64_t fewest = 24;
  if (options.most_iterations() < fewest)
    throw ValueError(fmt::format("{} iterations are too few for a fit: allow {} or more", options.most_iterations(), fewest));
}

}  // namespace

double highest_density_bound(double unknowns, double level) {
  if (!(level > 0 && level < 1)) throw ValueError(fmt::format("the level is {}; it must be between 0 and 1", level));
  if (!(unknowns >= 1)) throw ValueError(fmt::format("{} unknowns have no posterior: 1 or more are needed", unknowns));
  const double beyond = 1 - level;
  double low = 0, high = unknowns;
  while (part_beyond(unknowns, high) > beyond) high = 2 * (low = high);
  while (high - low > 1e-12 * high) {
    const double middle = (low + high) / 2;
    (part_beyond(unknowns, middle) > beyond ? low : high) = middle;
  }
  return high;
}

double JudgedStructure::sigma() const { return std::sqrt(2 * least_excess); }

std::string StructureTest::obstacle(ImageModel& model, const Objective& objective) {
  return Bootstrap::obstacle(model, objective);
}

StructureTest::StructureTest(std::shared_ptr<GriddedNetImpl> model, Objective objective, StructureTestOptions options)
    : model_(std::move(model)), objective_(std::move(objective)), options_(std::move(options)) {
  highest_density_bound(1, options_.level());
  check_structure_options(options_);
  if (const auto why = obstacle(*model_, objective_); !why.empty())
    throw ValueError(fmt::format("structures of this fit cannot be judged: {}", why));
}

JudgedStructure StructureTest::judge(const Tensor& region) const {
  const torch::NoGradGuard no_grad;
  auto& likelihood = objective_.likelihood();
  const auto before = likelihood.working_state();
  TrueExcess excess(model_, objective_, options_);
  const auto shape = excess.optimum().sizes();  // (1, nchan, npix, npix)
  if (region.dim() < 2 || region.dim() > 3 || region.sizes().slice(region.dim() - 2) != shape.slice(2) ||
      (region.dim() == 3 && region.size(0) != shape[1])) {
    throw ShapeError(fmt::format("a region of shape {} in an image of shape {}: expected (npix, npix) or (nchan, npix, npix)",
                                 region.sizes().vec(), shape.slice(1).vec()));
  }
  const auto pixels_of = [&](const Tensor& base) {
    return model_->bcube->options().pixel_mapping().forward(base.view(model_->base().sizes())).view(shape);
  };
  const auto fitted = pixels_of(model_->base().detach()), shining = pixels_of(at::ones_like(fitted));
  const auto filled = harmonic_fill(fitted, region) * shining;
  const auto sky_of = [&](const Tensor& pixels) {
    return model_->smoothed(pixels).select(0, 0).to(torch::kCPU, torch::kFloat64);
  };

  JudgedStructure found;
  found.pixels = (region.to(shining.device()).ne(0) * shining).ne(0).sum().item<std::int64_t>();
  if (found.pixels == 0) throw ValueError("the region has no pixel that may shine: mark those of a structure");
  found.f_image = excess.at_optimum();
  const auto shine = static_cast<double>(shining.ne(0).sum().item<std::int64_t>());
  found.places = shine / static_cast<double>(found.pixels);
  found.bound = highest_density_bound(1, 1 - (1 - options_.level()) / found.places);
  found.bound_of_image = highest_density_bound(shine, options_.level());
  found.image = sky_of(fitted);
  found.filled = found.least = sky_of(filled);
  const auto flux = ((found.image - found.filled).sum({-2, -1}) * model_->coords().cell_area()).contiguous();
  found.flux.assign(flux.const_data_ptr<double>(), flux.const_data_ptr<double>() + flux.numel());

  const auto window = smooth_window(region).to(fitted.options()).expand(shape).contiguous();
  const auto weights = model_->smoothed(window) * shining;  // of base pixels in the weighted flux: S is its own adjoint
  const double flux_of_filled = overlap(weights, filled), taken = overlap(weights, fitted) - flux_of_filled;
  found.filled_excess = std::max(excess.of(filled), 0.0);
  if (found.filled_excess > 0 && taken != 0) {
    ZeroContrast search(std::min(found.filled_excess, 2 * found.bound));  // where it decides, if F is quadratic
    auto images = excess.optimum().clone();
    while (found.fits < options_.most_fits()) {
      const double m = search.m();
      excess.fit(images, weights * (m / taken));
      ++found.fits;
      const double contrast = (overlap(weights, images) - flux_of_filled) / taken;
      const double least = std::min(excess.of(images) + m * contrast, found.filled_excess);
      if (least > found.least_excess) {
        found.least_excess = least;
        found.least = sky_of(images);
      }
      if (std::abs(contrast) < contrast_of_none) break;
      search.learn(contrast);
    }
  }
  likelihood.load_working_state(before);
  return found;
}

}  // namespace mpol
