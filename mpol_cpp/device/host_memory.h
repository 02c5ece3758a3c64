#pragma once

#include <optional>
#include <string>

namespace mpol {

/// Memory that can still be had on this machine, bytes: the smaller of the kernel's MemAvailable and what the control
/// group leaves. Empty where neither says.
std::optional<double> available_memory();

/// "3.2 GiB", "512 MiB", "17 KiB": bytes in words.
std::string memory_words(double bytes);

}  // namespace mpol
