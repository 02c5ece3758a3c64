#include <mpol_cpp/train/options/schedule.h>

#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

void check_gamma(double gamma) {
  if (!(gamma > 0 && gamma <= 1)) throw ValueError(fmt::format("gamma of a schedule is {}; it must lie in (0, 1]", gamma));
}

void check_epochs(const char* setting, std::int64_t epochs) {
  if (epochs < 1) throw ValueError(fmt::format("{} of a schedule is {}; it must be at least 1", setting, epochs));
}

}  // namespace

LearningRateSchedule LearningRateSchedule::exponential(double gamma) {
  check_gamma(gamma);
  return {fmt::format("exponential({})", gamma), [=](std::int64_t epoch) { return std::pow(gamma, static_cast<double>(epoch)); }};
}

LearningRateSchedule LearningRateSchedule::step(std::int64_t interval, double gamma) {
  check_epochs("interval", interval);
  check_gamma(gamma);
  return {fmt::format("step({}, {})", interval, gamma), [=](std::int64_t epoch) {
            const std::int64_t steps = epoch / interval;
            return std::pow(gamma, static_cast<double>(steps));
          }};
}

LearningRateSchedule LearningRateSchedule::cosine(std::int64_t epochs, double final_factor) {
  check_epochs("epochs", epochs);
  if (!(final_factor >= 0 && final_factor <= 1)) {
    throw ValueError(fmt::format("final_factor of a schedule is {}; it must lie in [0, 1]", final_factor));
  }
  return {fmt::format("cosine({}, {})", epochs, final_factor), [=](std::int64_t epoch) {
            if (epoch >= epochs) return final_factor;
            const double phase = units::pi * static_cast<double>(epoch) / static_cast<double>(epochs);
            return final_factor + (1.0 - final_factor) * 0.5 * (1.0 + std::cos(phase));
          }};
}

}  // namespace mpol
