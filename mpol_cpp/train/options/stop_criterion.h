#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <mpol_cpp/core/octave_falls.h>
#include <mpol_cpp/train/options/loss_history.h>

namespace mpol {

/// Whether the total has stayed within `relative` of where it is now, relatively, in each of the `window` epochs before: a loss
/// that swings to and fro has not converged (MPoL's TrainTest, whose window is 10). It looks at nothing but the loss history, so
/// that a resumed run decides as one that never stopped. Off when `relative` is 0.
inline bool has_converged(const LossHistory& history, double relative, std::int64_t window) {
  const auto span = static_cast<std::size_t>(window);
  if (relative <= 0 || history.size() <= span) return false;
  const auto last = history.size() - 1;
  const double now = history.total(last);
  for (auto epoch = last - span; epoch < last; ++epoch) {
    const double before = history.total(epoch);
    if (!(std::abs(before - now) <= relative * std::abs(before))) return false;
  }
  return true;
}

/// How far the total has fallen over the second half of the epochs. Means over a twentieth of the epochs are compared, at the
/// middle and at the end: losses of Adam swing. 0 where it has not.
inline double fall_of_total(const LossHistory& history) {
  constexpr std::size_t windows = 20;
  const auto epochs = history.size();
  if (epochs < 2) return 0;
  const auto window = std::max<std::size_t>(epochs / windows, 1);
  const auto mean_before = [&](std::size_t end) {
    double sum = 0;
    for (auto epoch = end - window; epoch < end; ++epoch) sum += history.total(epoch);
    return sum / static_cast<double>(window);
  };
  return std::max(mean_before(epochs / 2) - mean_before(epochs), 0.0);
}

/// What a fall of the loss is a part of: what the regularizers have in the last epoch, the total where there are none.
inline double scale_of_fall(const LossHistory& history) {
  const auto last = history.back();
  const double regularizers = last.total() - last.nll();
  return regularizers > 0 ? regularizers : std::abs(last.total());
}

/// How far the loss has fallen over the second half of the epochs, as a part of that.
inline double fall_of_loss(const LossHistory& history) {
  const double fallen = fall_of_total(history);
  return fallen > 0 ? fallen / scale_of_fall(history) : 0;
}

/// Whether a loss that does not swing may still have far to fall, beside `tolerance`, although it has not fallen far over the
/// second half of its epochs: a fit whose momentum still grows falls the faster the longer it goes on.
inline bool may_fall_far(const LossHistory& history, double tolerance) {
  const auto last = history.size() - 1, half = last / 2, quarter = last / 4;
  return may_fall_far(history.total(half) - history.total(last), history.total(quarter) - history.total(half),
                      tolerance * scale_of_fall(history));
}

/// Whether the loss falls no more than `tolerance`, after 200 epochs or more; it looks at nothing but the loss history.
inline bool has_settled(const LossHistory& history, double tolerance) {
  constexpr std::size_t fewest = 200;
  return history.size() >= fewest && fall_of_loss(history) <= tolerance;
}

}  // namespace mpol
