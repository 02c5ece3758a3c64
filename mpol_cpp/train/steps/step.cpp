#include <mpol_cpp/train/steps/step.h>

#include <mpol_cpp/core/error.h>

namespace mpol {

std::vector<StepReport> Step::take_several(double learning_rate, std::int64_t count) {
  std::vector<StepReport> reports;
  for (std::int64_t i = 0; i < count; ++i) reports.push_back(take(learning_rate));
  return reports;
}

void Step::set_totals(const Tensor&) { throw ValueError("this step does not stop problems by itself: use set_stopped"); }

}  // namespace mpol
