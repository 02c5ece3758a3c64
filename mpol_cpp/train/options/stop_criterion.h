#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

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

}  // namespace mpol
