#pragma once

#include <string>
#include <vector>

namespace mpol::cli {

/// The names in "a.npz,b.npz": commas separate, and a backslash before a comma makes it part of a name. Empty names are left out.
std::vector<std::string> split_file_list(const std::string& list);

/// The text that split_file_list takes apart into these names.
std::string join_file_list(const std::vector<std::string>& names);

}  // namespace mpol::cli
