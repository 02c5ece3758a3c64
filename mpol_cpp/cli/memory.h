#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <torch/types.h>

namespace mpol::cli {

/// Memory that can still be had on this machine, bytes: the smaller of the kernel's MemAvailable and what the control
/// group leaves. Empty where neither says.
std::optional<double> available_memory();

/// Peak memory of the arrays of a fit, bytes, from its sizes alone.
double fit_memory(double npix, double nchan, torch::Dtype dtype, const std::string& optimizer);

/// Peak memory of making dirty images, bytes, from their sizes alone.
double dirty_memory(double npix, double nchan);

/// @throws mpol::Error naming both numbers when `needed` bytes cannot be had
void check_memory(double needed, std::optional<double> available, std::int64_t npix, std::int64_t nchan);

/// "3.2 GiB", "512 MiB"
std::string memory_words(double bytes);

}  // namespace mpol::cli
