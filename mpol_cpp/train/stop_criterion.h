#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <mpol_cpp/train/train_options.h>

namespace mpol {

/// Whether the total has stayed within `relative` of where it is now, relatively, in each of the `window` epochs before: a loss
/// that swings to and fro has not converged (MPoL's TrainTest, whose window is 10). It looks at nothing but the loss history, so
/// that a resumed run decides as one that never stopped. Off when `relative` is 0.
inline bool has_converged(const std::vector<EpochLoss>& history, double relative, std::int64_t window) {
  const auto span = static_cast<std::size_t>(window);
  if (relative <= 0 || history.size() <= span) return false;
  const double now = history.back().total();
  return std::all_of(history.end() - 1 - static_cast<std::ptrdiff_t>(span), history.end() - 1, [&](const EpochLoss& before) {
    return std::abs(before.total() - now) <= relative * std::abs(before.total());
  });
}

}  // namespace mpol
