#pragma once

namespace mpol {

/// A fall over the last octave of epochs from which nothing is concluded, as a part of what may be left.
inline constexpr double negligible_fall = 0.1;

/// Whether a loss may still have far to fall although it has not fallen far: what it fell by over the last octave of epochs and
/// over the one before shrinks by a ratio; all octaves to come have last^2/(before - last) then, or no end where it does not
/// shrink, as while momentum grows. Not where the last fall was negligible.
/// @param last, before  falls over the epochs from k/2 to k and from k/4 to k/2
/// @param allowed       that may be left
inline bool may_fall_far(double last, double before, double allowed) {
  return last > negligible_fall * allowed && last * last > allowed * (before - last);
}

}  // namespace mpol
