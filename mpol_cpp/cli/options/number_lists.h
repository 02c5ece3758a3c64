#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// Numbers of a list such as "0,3-7", in that order; none for an empty one. @param option  for messages  @throws UsageError
std::vector<std::int64_t> parse_number_list(const std::string& option, const std::string& list);

/// The items of a list, between separators.
std::vector<std::string> list_items(const std::string& list, char separator);

/// A place such as "12,-0.5", arcsec to the East and to the North. @param option  for messages  @throws UsageError
SkyOffset parse_offset(const std::string& option, const std::string& text);
/// It as parse_offset() reads it, to nine digits.
std::string offset_value(const SkyOffset& offset);

}  // namespace mpol::cli
