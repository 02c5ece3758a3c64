#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol::detail {

/// Where a fit left the finite numbers.
struct Breakdown {
  enum class Where { loss, parameters };
  Where where = Where::loss;
  std::int64_t epoch = 0;      ///< `loss`: its value before this epoch's update; `parameters`: after that update
  double learning_rate = 0;    ///< of the update that led there
  std::vector<double> values;  ///< the columns' values at that epoch
};

/// The column that broke: the first of the terms that is not finite, else "total".
std::string broken_column(const std::vector<std::string>& columns, const std::vector<double>& values);

/// The first column whose gradient at the model's present parameters is not finite; empty when all are.
std::string broken_gradient(ImageModel& model, const Objective& objective);

/// Epoch, the term that broke, and what to try. For broken parameters the model must be in the state before the update.
std::string diagnose(const Breakdown& breakdown, ImageModel& model, const Objective& objective);

}  // namespace mpol::detail
