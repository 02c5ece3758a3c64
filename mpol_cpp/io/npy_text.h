#pragma once

#include <string>
#include <string_view>

namespace mpol::io {

/// UTF-8 of one element of a numpy unicode array: UTF-32 padded with zeros. Invalid code points become '?'.
std::string utf8_of_numpy(std::string_view utf32, bool byte_swapped);

/// One element of a numpy unicode array (UTF-32 in this machine's byte order) of UTF-8. Invalid bytes become '?'.
std::string numpy_of_utf8(std::string_view utf8);

}  // namespace mpol::io
