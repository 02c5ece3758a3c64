#include <mpol_cpp/cli/run/bounded_weights.h>

#include <algorithm>
#include <utility>

#include <mpol_cpp/cli/image/fit_setup.h>
#include <mpol_cpp/cli/image/optimizer_choice.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/stopwatch.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/crossval/bounded_fit.h>
#include <mpol_cpp/models/gridded_net.h>

namespace mpol::cli {
namespace {

/// How far the image that is written may be from the bound.
constexpr double tolerance_of_image = 1e-3;

double bound_of(const TermWeighing& with) {
  const auto& bound = with.options.chi2_bound->value;
  return bound ? *bound * 2 * static_cast<double>(with.size.visibilities) : chi_squared_bound(with.size.visibilities);
}

void print_fit(const BoundedFitPoint& point, double bound) {
  fmt::print("bound: lambda times {:<10.4g} chi^2 {:.5f} of the bound ({} epochs)\n", point.factor, point.chi_squared / bound,
             point.epochs);
}

}  // namespace

std::vector<Term> bounded_weights(const std::vector<Term>& terms, const TermWeighing& with) {
  const auto& options = with.options;
  if (std::all_of(terms.begin(), terms.end(), [](const Term& term) { return term.is_off(); })) {
    throw UsageError(error_text("--chi2-bound", options.chi2_bound->text,
                                "no regulariser is in the fit: nothing tells which image within the bound is the simplest",
                                "add --wavelets auto, or --sparsity and --tv"));
  }
  const Stopwatch watch(with.summary.seconds.crossval);
  GriddedNet model = make_model(options, with.data);
  model->to(with.device, options.data.dtype);
  auto train = train_options(options, with.record, with.state);
  train.interrupted([] { return stop_requested() != 0; }).tolerance(std::min(*choose_optimizer(options).tolerance, 1e-4));
  if (train.optimizer() == OptimizerKind::admm) train.optimizer(OptimizerKind::pogm);
  const double bound = bound_of(with);
  auto how = BoundedFitOptions().normalize(options.normalize).train(std::move(train));
  if (options.output.speaks()) how.on_fit([bound](const BoundedFitPoint& point) { print_fit(point, bound); });
  const auto found = fit_within(model.ptr(), with.likelihood, terms, bound, how);
  stop_if_requested();
  with.summary.bound =
      BoundSummary{.bound = bound, .factor = found.factor, .fits = static_cast<std::int64_t>(found.points.size())};
  std::vector<Term> weighed;
  weighed.reserve(terms.size());
  for (const auto& term : terms) weighed.push_back(term.with_weights({term.weights().front() * found.factor}));
  return weighed;
}

std::string bound_warning(const ImageSummary& summary) {
  if (!summary.bound) return {};
  const double ratio = summary.chi_squared / summary.bound->bound;
  if (ratio >= 1 - tolerance_of_image && ratio <= 1 + tolerance_of_image) return {};
  return fmt::format(
      "chi^2 of the image is {:.5f} of its bound: the fit ended before it was there; give a smaller --tolerance, or more "
      "--epochs",
      ratio);
}

}  // namespace mpol::cli
