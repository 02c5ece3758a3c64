#pragma once

#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/program/option_set.h>

namespace mpol::cli {

/// `mpol image`: reads, grids, fits, writes; returns the exit code. What the program chose (device, threads, step) takes
/// the place of "auto" in the options, and so in run.toml.
int run_image(ImageOptions& options, const OptionSet& settings);

}  // namespace mpol::cli
