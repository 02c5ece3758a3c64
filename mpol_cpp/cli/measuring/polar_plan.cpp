#include <mpol_cpp/cli/measuring/polar_plan.h>

#include <algorithm>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

/// What a bin takes: sum, mean, variance, two values between, and those that are written; and about so much text.
constexpr double bytes_of_bin = 8 * sizeof(double) + 96;

}  // namespace

ChannelPlan plan_of(SkyCube& cube) {
  return ChannelPlan(
      {cube.nchan(), cube.bytes_of_channel(), [&cube](std::int64_t begin, std::int64_t end) { return cube.read(begin, end); }});
}

ChannelPlan polar_plan(SkyCube& cube, const PolarIntegrator& integrator, torch::Dtype dtype) {
  auto plan = plan_of(cube);
  const auto bins = static_cast<double>(integrator.nr()) * static_cast<double>(integrator.nphi());
  plan.then("polar", bins * bytes_of_bin, [&integrator, dtype](const std::vector<Tensor>& sky) {
    const auto map = integrator.integrate(sky[0].to(dtype));
    return std::vector<Tensor>{map.sum, map.mean, map.variance};
  });
  return plan;
}

void declare_memory_limit(OptionSet& options, double& memory_limit) {
  options.number("--memory-limit", memory_limit, Range::positive(), "GIB",
                 "Memory for the channels of a cube that are worked on at one time", Record::manner);
}

void run_plan(const ChannelPlan& plan, const PlanRun& run, const ChannelPlan::Sink& sink) {
  const auto options =
      ChannelPlanOptions().memory_budget(run.part * std::min(run.memory_limit, 1e6) * 0x1p30).devices(run.devices);
  if (options.memory_budget() < plan.least_budget(options)) {
    throw UsageError(error_text(
        "--memory-limit", fmt::format("{}", run.memory_limit),
        fmt::format("one channel at a time takes {:.4g} GiB", plan.least_budget(options) / run.part / 0x1p30), "allow as much"));
  }
  plan.run(sink, options);
}

}  // namespace mpol::cli
