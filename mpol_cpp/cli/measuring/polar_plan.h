#pragma once

#include <vector>

#include <torch/types.h>

#include <mpol_cpp/analysis/channel_plan.h>
#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/program/option_set.h>

namespace mpol::cli {

/// A plan that reads the channels of a cube, which must outlive it.
ChannelPlan plan_of(SkyCube& cube);

/// Reads the channels of a cube and integrates them: sums, means and variances, (n, nr, nphi) each. Both must outlive the plan.
/// @param dtype  in which it is done
ChannelPlan polar_plan(SkyCube& cube, const PolarIntegrator& integrator, torch::Dtype dtype);

/// How a plan is run: within a part of the limit of GiB that --memory-limit sets, on devices that share the channels.
struct PlanRun {
  double memory_limit = 1;
  std::vector<torch::Device> devices = {torch::kCPU};
  double part = 1;
};

/// Declares --memory-limit of a verb that works on channels block by block.
void declare_memory_limit(OptionSet& options, double& memory_limit);

/// Runs a plan. @throws UsageError where one channel at a time on each device takes more
void run_plan(const ChannelPlan& plan, const PlanRun& run, const ChannelPlan::Sink& sink);

}  // namespace mpol::cli
