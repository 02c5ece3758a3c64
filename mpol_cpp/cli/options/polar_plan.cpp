#include <mpol_cpp/cli/options/polar_plan.h>

#include <algorithm>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

/// What a bin takes: sum, mean, variance, two values between, and those that are written; and about so much text.
constexpr double bytes_of_bin = 8 * sizeof(double) + 96;

}  // namespace

ChannelPlan polar_plan(SkyCube& cube, const PolarIntegrator& integrator) {
  ChannelPlan plan(
      {cube.nchan(), cube.bytes_of_channel(), [&cube](std::int64_t begin, std::int64_t end) { return cube.read(begin, end); }});
  const auto bins = static_cast<double>(integrator.nr()) * static_cast<double>(integrator.nphi());
  plan.then("polar", bins * bytes_of_bin, [&integrator](const std::vector<Tensor>& sky) {
    const auto map = integrator.integrate(sky[0]);
    return std::vector<Tensor>{map.sum, map.mean, map.variance};
  });
  return plan;
}

void run_plan(const ChannelPlan& plan, double memory_limit, const ChannelPlan::Sink& sink, double part) {
  const auto options = ChannelPlanOptions().memory_budget(part * std::min(memory_limit, 1e6) * 0x1p30);
  if (options.memory_budget() < plan.least_budget(options)) {
    throw UsageError(error_text("--memory-limit", fmt::format("{}", memory_limit),
                                fmt::format("one channel at a time takes {:.4g} GiB", plan.least_budget(options) / part / 0x1p30),
                                "allow as much"));
  }
  plan.run(sink, options);
}

}  // namespace mpol::cli
