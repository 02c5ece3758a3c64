#include <mpol_cpp/crossval/bounded_fit.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/crossval/fold_fit.h>

namespace mpol {
namespace {

constexpr double first_stride = 1.2, longest_stride = 2.4;  // in ln s: factors of 3.3 and 11
constexpr double most_reach = 23;                           // ten decades
constexpr double still_falling = 0.02;                      // of what is too much, that a stride of the longest must take away

/// A factor and how far its fit is from the bound.
struct Side {
  double ln_factor, excess;  // ln(chi^2/B)
};

/// The search for the factor.
class BoundSearch {
 public:
  BoundSearch(const std::shared_ptr<ImageModel>& model, const std::shared_ptr<Likelihood>& likelihood,
              const std::vector<Term>& terms, double bound, const BoundedFitOptions& options)
      : model_(model),
        likelihood_(likelihood),
        terms_(terms),
        options_(options),
        fit_(model, likelihood, options.normalize(), options.train()) {
    found_.bound = bound;
  }

  BoundedFit run() {
    check_dark_image();
    if (!find_sides()) return found_;
    while (!is_over()) {
      const auto next = excess_at(between());
      if (found_.interrupted) break;
      narrow(next);
    }
    return found_;
  }

 private:
  void check_dark_image() const {
    const torch::NoGradGuard no_grad;
    const double dark = likelihood_->chi_squared(at::zeros_like(model_->make_sky())).sum().item<double>();
    if (dark > found_.bound) return;
    throw DataError(
        fmt::format("an image without any light has a chi^2 of {:.6g}, within the bound of {:.6g}: there is nothing "
                    "to fit; give a smaller bound, or look at the weights",
                    dark, found_.bound));
  }

  /// ln(chi^2/B) of a fit.
  Side excess_at(double ln_factor) {
    std::vector<Term> terms;
    const double factor = std::exp(ln_factor);
    for (const auto& term : terms_) {
      auto weights = term.weights();
      for (auto& weight : weights) weight *= factor;
      terms.push_back(term.with_weights(std::move(weights)));
    }
    const auto end = fit_.fit(terms);
    found_.interrupted = end.reason == StopReason::interrupted;
    if (end.reason == StopReason::diverged) throw DivergedError("a fit on the way to the bound of chi^2 diverged");
    const torch::NoGradGuard no_grad;
    const BoundedFitPoint point{factor, likelihood_->chi_squared(model_->make_sky()).sum().item<double>(), end.epochs};
    found_.factor = point.factor;
    found_.chi_squared = point.chi_squared;
    found_.is_met = std::abs(point.chi_squared / found_.bound - 1) <= options_.tolerance();
    found_.points.push_back(point);
    if (options_.on_fit()) options_.on_fit()(point);
    return {ln_factor, std::log(point.chi_squared / found_.bound)};
  }

  bool is_over() const {
    return found_.is_met || found_.interrupted || static_cast<std::int64_t>(found_.points.size()) >= options_.most_fits();
  }

  /// Finds factors on both sides of the bound. @return whether the search goes on between them
  bool find_sides() {
    auto last = excess_at(0);
    double stride = first_stride;
    while (!is_over()) {
      (last.excess > 0 ? above_ : below_) = last;
      if (above_ && below_) return true;
      const auto next = excess_at(last.ln_factor + (last.excess > 0 ? -stride : stride));
      if (found_.interrupted) return false;
      if (last.excess > 0 && next.excess > 0) check_falls(last, next, stride);
      if (std::abs(next.ln_factor) > most_reach) throw unreachable();
      last = next;
      stride = longest_stride;
    }
    return false;
  }

  /// @throws DataError where chi^2 has come to its least value above the bound
  void check_falls(const Side& last, const Side& next, double stride) const {
    if (stride == longest_stride && last.excess - next.excess < still_falling * next.excess) throw unreachable();
  }

  DataError unreachable() const {
    return DataError(
        fmt::format("no image comes to the bound of chi^2: {:.6g}; with hardly any regularisation {:.6g} is left; the "
                    "noise is larger than the weights say (mpol weights tells by how much), or give a larger bound",
                    found_.bound, found_.chi_squared));
  }

  double between() const {
    const double a = below_->ln_factor, b = above_->ln_factor;
    const double part = below_->excess / (below_->excess - above_->excess);
    return a + (b - a) * std::clamp(part, 0.02, 0.98);
  }

  /// A side that stays twice counts half: Illinois.
  void narrow(const Side& next) {
    const bool is_above = next.excess > 0;
    (is_above ? above_ : below_) = next;
    if (stayed_ == std::optional(!is_above)) (is_above ? below_ : above_)->excess /= 2;
    stayed_ = !is_above;
  }

  std::shared_ptr<ImageModel> model_;
  std::shared_ptr<Likelihood> likelihood_;
  const std::vector<Term>& terms_;
  const BoundedFitOptions& options_;
  detail::FoldFit fit_;
  BoundedFit found_;
  std::optional<Side> above_, below_;  // chi^2 above the bound, or below
  std::optional<bool> stayed_;         // whether `above_` did, the last time
};

void check(const std::vector<Term>& terms, double bound, const BoundedFitOptions& options) {
  if (!(bound > 0) || !std::isfinite(bound)) throw ValueError(fmt::format("the bound of chi^2 is {}; it must be above 0", bound));
  if (std::all_of(terms.begin(), terms.end(), [](const Term& term) { return term.is_off(); }))
    throw ValueError("no term has a weight: nothing tells which image within the bound of chi^2 is the simplest");
  if (!(options.tolerance() > 0) || options.most_fits() < 1) {
    throw ValueError(fmt::format("a search to {} of the bound in {} fits: the tolerance must be above 0, and one fit the least",
                                 options.tolerance(), options.most_fits()));
  }
  const auto optimizer = options.train().optimizer();
  if (optimizer != OptimizerKind::pogm && optimizer != OptimizerKind::fista)
    throw ValueError(fmt::format("fits to a bound are by pogm or fista, not {}", to_string(optimizer)));
}

}  // namespace

double chi_squared_bound(std::int64_t visibilities) {
  if (visibilities < 1) throw ValueError(fmt::format("chi^2 of {} visibilities has no bound: give 1 or more", visibilities));
  const double n = 2 * static_cast<double>(visibilities);
  return n + 2 * std::sqrt(2 * n);
}

BoundedFit fit_within(const std::shared_ptr<ImageModel>& model, const std::shared_ptr<Likelihood>& likelihood,
                      const std::vector<Term>& terms, double bound, const BoundedFitOptions& options) {
  check(terms, bound, options);
  if (model->base().defined() && model->base().dim() > 3)
    throw ValueError(fmt::format("a bound is for one problem, not for base pixels {}", model->base().sizes().vec()));
  return BoundSearch(model, likelihood, terms, bound, options).run();
}

}  // namespace mpol
