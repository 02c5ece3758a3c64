#include <mpol_cpp/train/fit_verdict.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include <mpol_cpp/core/format.h>

namespace mpol::detail {
namespace {

bool rose(double first, double last) { return last - first > rounding_of_losses * std::max(std::abs(first), std::abs(last)); }

/// The epoch of the largest total; the last one wins where the final loss is larger.
std::pair<std::int64_t, double> largest_total(const TrainResult& fit) {
  std::pair<std::int64_t, double> largest{fit.epochs, fit.loss.total()};
  for (const auto& loss : fit.history) {
    if (loss.total() > largest.second) largest = {loss.epoch, loss.total()};
  }
  return largest;
}

std::string words_of_dead(const FinalImage& image) {
  return image.problems == 1 ? "the image" : fmt::format("the image of {} of {} problems", image.dead, image.problems);
}

/// How a fit exploded; empty where it did not.
std::string explosion(const TrainResult& fit, const FinalImage& image) {
  const double first = fit.history.front().total(), last = fit.loss.total();
  const auto [epoch, largest] = largest_total(fit);
  const double empty = image.empty_nll.value_or(first);
  const bool exploded = largest > explosion_factor * std::max(std::abs(first), std::abs(empty));
  const bool recovered = image.dead == 0 && last < recovered_part * std::min(first, empty);
  const bool died = image.dead > 0 && rose(first, last) && fit.stop_reason != StopReason::converged;
  if (!(exploded && !recovered) && !died) return {};
  std::string how =
      fmt::format("the loss was {:.4g} at first, {:.4g} at epoch {} and {:.4g} in the end", first, largest, epoch, last);
  if (image.dead > 0) how += fmt::format(", where {} is empty (flux {:.3g} Jy)", words_of_dead(image), image.flux);
  return fmt::format("{}: try a smaller learning rate than {:g}, or another optimiser", how, fit.history.front().learning_rate);
}

/// Mean total of the epochs [begin, end).
double mean_total(const TrainResult& fit, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (auto epoch = begin; epoch < end; ++epoch) sum += fit.history[epoch].total();
  return sum / static_cast<double>(end - begin);
}

std::string change_in_words(const char* what, double before, double after, const char* unit) {
  const auto percent = before == 0 ? std::string() : fmt::format(" ({:+.1f} %)", 100 * (after / before - 1));
  return fmt::format("{} went from {:.4g} to {:.4g}{}{}", what, before, after, unit, percent);
}

/// Whether a number changed by more than a part of its size.
bool moved(double before, double after, double part, double size = 0) {
  return std::abs(after - before) > part * std::max(std::abs(before), size);
}

/// How a fit was still moving when its epochs ended; empty where it was not, or is too short to tell.
std::string movement(const TrainResult& fit, const FinalImage& image, const std::optional<FluxMark>& mark) {
  const auto marked = marked_epochs(fit.epochs);
  const auto done = static_cast<std::int64_t>(fit.history.size());
  if (fit.stop_reason != StopReason::epochs || marked < 0 || done != fit.epochs) return {};
  const auto last = fit.epochs - marked;
  std::vector<std::string> changes;
  if (mark && mark->epochs == marked && moved(mark->flux, image.flux, moving_flux, mark->magnitude)) {
    changes.push_back(change_in_words("the flux", mark->flux, image.flux, " Jy"));
  }
  // Means of tenths: the loss of a batch of visibilities, and of a step that is too long, swings.
  const auto from = static_cast<std::size_t>(marked), tenth = static_cast<std::size_t>(last);
  const double before = mean_total(fit, from - tenth, from), after = mean_total(fit, from, from + tenth);
  if (moved(before, after, moving_loss)) changes.push_back(change_in_words("the mean loss", before, after, ""));
  if (changes.empty()) return {};
  return fmt::format(
      "the fit was still moving when its {} epochs ended: over the last {} {}; take more epochs, or begin nearer the end with "
      "--start dirty (a base cube made of the dirty image)",
      fit.epochs, last, fmt::join(changes, " and "));
}

/// What a fit that was to converge did not reach; empty where it did.
std::string lack_of_convergence(const TrainResult& fit, const FinalImage& image, const std::optional<FluxMark>& mark,
                                double tolerance) {
  if (fit.stop_reason != StopReason::epochs) return {};
  std::string changes;
  if (mark && image.change) {
    changes = fmt::format("; from epoch {} on the image changed by {:.2g} % (root mean square) and {}", mark->epochs,
                          100 * *image.change, change_in_words("the flux", mark->flux, image.flux, " Jy"));
  }
  return fmt::format("the fit had not converged to a tolerance of {:g} when its {} epochs ended{}: take more epochs", tolerance,
                     fit.epochs, changes);
}

}  // namespace

std::int64_t marked_epochs(std::int64_t epochs) { return epochs < fewest_judged_epochs ? -1 : epochs - epochs / 10; }

FitVerdict judge_fit(const TrainResult& fit, const FinalImage& image, const std::optional<FluxMark>& mark,
                     std::optional<double> tolerance) {
  FitVerdict verdict;
  if (fit.history.empty() || fit.stop_reason == StopReason::interrupted) return verdict;
  verdict.diagnosis = explosion(fit, image);
  verdict.diverged = !verdict.diagnosis.empty();
  if (verdict.diverged || fit.stop_reason == StopReason::callback) return verdict;  // which has not come to its end
  const double first = fit.history.front().total(), last = fit.loss.total();
  // Proximal steps minimise the variation itself, and of faint images the loss has that of its smoothed form.
  if (fit.stop_reason != StopReason::converged && rose(first, last)) {
    verdict.warnings.push_back(fmt::format(
        "the loss ended above where it began: {:.6g} after {} epochs, {:.6g} before the first; try a smaller learning "
        "rate than {:g}, or another optimiser",
        last, fit.epochs, first, fit.history.front().learning_rate));
  }
  if (image.dead > 0 && fit.stop_reason == StopReason::converged && tolerance) {
    verdict.warnings.push_back(
        fmt::format("{} is empty (flux {:.3g} Jy): at these weights of the regularisers the data do not tell it from one "
                    "without any source",
                    words_of_dead(image), image.flux));
  } else if (image.dead > 0) {
    verdict.warnings.push_back(
        fmt::format("{} has died: the data cannot tell it from an empty one (flux {:.3g} Jy); try smaller weights of the "
                    "regularisers, a smaller learning rate, or another start image",
                    words_of_dead(image), image.flux));
  }
  auto words = tolerance ? lack_of_convergence(fit, image, mark, *tolerance) : movement(fit, image, mark);
  if (!words.empty()) verdict.warnings.push_back(std::move(words));
  return verdict;
}

}  // namespace mpol::detail
