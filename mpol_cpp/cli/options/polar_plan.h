#pragma once

#include <mpol_cpp/analysis/channel_plan.h>
#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/cli/options/sky_grid.h>

namespace mpol::cli {

/// Reads the channels of a cube and integrates them: sums, means and variances, (n, nr, nphi) each. Both must outlive the plan.
ChannelPlan polar_plan(SkyCube& cube, const PolarIntegrator& integrator);

/// Runs a plan on the CPU within a part of the limit of GiB that --memory-limit sets.
/// @throws UsageError where one channel at a time takes more
void run_plan(const ChannelPlan& plan, double memory_limit, const ChannelPlan::Sink& sink, double part = 1);

}  // namespace mpol::cli
