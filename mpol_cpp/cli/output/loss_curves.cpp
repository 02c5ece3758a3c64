#include <mpol_cpp/cli/output/loss_curves.h>

#include <algorithm>

namespace mpol::cli {

LossCurves loss_curves(const LossHistory& history) {
  LossCurves curves;
  if (history.empty()) return curves;
  const auto columns = history.row_values() - 1, shown = std::min(history.size(), LossCurves::most_epochs);
  curves.values.resize(columns);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto epoch = shown == 1 ? 0 : i * (history.size() - 1) / (shown - 1);
    const auto* row = history.row(epoch);
    curves.epochs.push_back(static_cast<double>(epoch));
    curves.learning_rate.push_back(row[0]);
    for (std::size_t column = 0; column < columns; ++column) curves.values[column].push_back(row[1 + column]);
  }
  return curves;
}

}  // namespace mpol::cli
