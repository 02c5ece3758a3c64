#pragma once

#include <optional>
#include <string>

namespace mpol {

/// Memory that can still be had on this machine, bytes: the smallest of the kernel's MemAvailable, what the control
/// groups of this process leave, and what its limit of address space leaves. Empty where none of them says.
std::optional<double> available_memory();

/// "3.2 GiB", "512 MiB", "17 KiB": bytes in words.
std::string memory_words(double bytes);

}  // namespace mpol
