#pragma once

#include <cstdint>
#include <optional>

#include <mpol_cpp/cli/image_options.h>
#include <mpol_cpp/device/host_memory.h>

namespace mpol::cli {

/// Peak memory of the arrays of a fit, bytes, from its options and sizes alone; 0 visibilities where their number, over all
/// channels, is not known yet.
double fit_memory(const ImageOptions& options, std::int64_t npix, std::int64_t nchan, std::int64_t visibilities,
                  torch::Device device);

/// Peak memory of making dirty images, bytes, from their sizes alone.
double dirty_memory(std::int64_t npix, std::int64_t nchan);

/// @throws mpol::Error naming both numbers when `needed` bytes cannot be had
void check_memory(double needed, std::optional<double> available, std::int64_t npix, std::int64_t nchan);

/// The same against what --memory-limit allows, bytes.
void check_memory_limit(double needed, double limit, std::int64_t npix, std::int64_t nchan);

}  // namespace mpol::cli
