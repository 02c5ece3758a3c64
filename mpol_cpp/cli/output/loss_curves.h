#pragma once

#include <vector>

#include <mpol_cpp/train/options/loss_history.h>

namespace mpol::cli {

/// The losses of a run as figures show them: of a long one an even choice of epochs, the last among them.
struct LossCurves {
  static constexpr std::size_t most_epochs = 4096;  // of a curve: more than a figure has pixels

  std::vector<double> epochs;
  std::vector<std::vector<double>> values;  ///< one vector per column
  std::vector<double> learning_rate;
};
LossCurves loss_curves(const LossHistory& history);

}  // namespace mpol::cli
