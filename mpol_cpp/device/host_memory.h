#pragma once

#include <optional>

#include <mpol_cpp/device/backend.h>

namespace mpol {

/// Memory that can still be had on this machine, bytes: the smaller of the kernel's MemAvailable and what the control
/// group leaves. Empty where neither says.
std::optional<double> available_memory();

}  // namespace mpol
