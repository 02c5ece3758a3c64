#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mpol {

/// Folders of the control groups that this process is in, from its own up to the root of the hierarchy: batch systems,
/// systemd and containers nest them, and the limit of each of them binds. Folders that are not there (a container sees only
/// its own part of the tree, under names of the host's) are left out.
/// @param controller  "memory", "cpu", … of version 1; empty: version 2, which has one hierarchy
/// @param root        what holds proc/ and sys/: another folder than / in tests
std::vector<std::filesystem::path> control_group_folders(const std::string& controller, const std::filesystem::path& root = "/");

/// Memory that the control groups of this process leave, bytes: the smallest of limit - used over its group and those above.
/// Files that the kernel keeps in memory (page cache) are charged to the group but go when somebody needs the room: they do
/// not count as used. Empty where no group has a limit.
std::optional<double> control_group_memory(const std::filesystem::path& root = "/");

}  // namespace mpol
