#pragma once

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>

namespace mpol {

/// The nearest number of two digits: what is no more than a rough measure need not depend on the last bits of a sum.
inline double two_digits(double value) { return number_of<double>(fmt::format("{:.1e}", value)).value(); }

}  // namespace mpol
