#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mpol::cli {

/// Numbers of a list such as "0,3-7", in that order; none for an empty one. @param option  for messages  @throws UsageError
std::vector<std::int64_t> parse_number_list(const std::string& option, const std::string& list);

/// The items of a list, between separators.
std::vector<std::string> list_items(const std::string& list, char separator);

}  // namespace mpol::cli
