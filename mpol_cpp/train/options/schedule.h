#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace mpol {

/// Multiplies the learning rate over the epochs; its state is the epoch alone.
/// factor(epoch) for epoch = 0, 1, …; the library's own: constant, exponential decay, step decay, cosine.
struct LearningRateSchedule {
  /// What a checkpoint compares when a run is resumed: give a schedule of your own a text that names its settings.
  std::string description = "constant";
  /// What the learning rate of an epoch is multiplied by.
  std::function<double(std::int64_t)> factor = [](std::int64_t) { return 1.0; };

  static LearningRateSchedule exponential(double gamma);                  ///< gamma^epoch, 0 < gamma <= 1
  static LearningRateSchedule step(std::int64_t interval, double gamma);  ///< gamma^floor(epoch / interval)
  /// From 1 to final_factor along half a cosine over `epochs` epochs, then final_factor.
  static LearningRateSchedule cosine(std::int64_t epochs, double final_factor = 0.0);
};

}  // namespace mpol
