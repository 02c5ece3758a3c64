#pragma once

#include <string>

namespace mpol {

/// A limit > 0 as a message may recommend it: with four digits, and never above the limit itself.
std::string rounded_down(double limit);

}  // namespace mpol
