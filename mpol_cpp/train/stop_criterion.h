#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <mpol_cpp/train/train_options.h>

namespace mpol {

/// Whether the total changed by less than `relative`, relatively, over the last `window` epochs. It looks at nothing but
/// the loss history, so that a resumed run decides as one that never stopped. Off when `relative` is 0.
inline bool has_converged(const std::vector<EpochLoss>& history, double relative, std::int64_t window) {
  const auto span = static_cast<std::size_t>(window);
  if (relative <= 0 || history.size() <= span) return false;
  const double now = history.back().total();
  const double before = history[history.size() - 1 - span].total();
  return std::abs(before - now) < relative * std::abs(now);
}

}  // namespace mpol
