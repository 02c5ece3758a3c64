#include <mpol_cpp/solvers/solver_report.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <mpol_cpp/core/format.h>

namespace mpol {

IterationCallback iteration_table(std::function<void(std::string_view line)> sink) {
  const auto worst = [](const std::vector<double>& values) {
    return values.empty() ? std::string(12, ' ') : fmt::format("{:12.4e}", *std::max_element(values.begin(), values.end()));
  };
  auto has_heading = std::make_shared<bool>(false);
  return [sink = std::move(sink), worst, has_heading](const IterationRecord& record) {
    if (!*has_heading)
      sink(fmt::format("{:>6} {:>12} {:>12} {:>12} {:>12} {:>9}", "iter", "objective", "primal", "dual", "rho", "seconds"));
    *has_heading = true;
    sink(fmt::format("{:6d} {} {} {} {} {:9.3f}", record.iteration, worst(record.objective), worst(record.primal_residual),
                     worst(record.dual_residual), worst(record.rho), record.seconds));
    return Proceed::go_on;
  };
}

}  // namespace mpol
