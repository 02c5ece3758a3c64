#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mpol {

/// Which part of polarised light visibilities and images are of: a Stokes parameter, or one correlation of two hands. Each value
/// is its number on the axis STOKES of the FITS standard.
enum class Stokes : std::int8_t {
  i = 1,    ///< total intensity
  q = 2,    ///< linear polarisation, North against East
  u = 3,    ///< linear polarisation, North-East against North-West
  v = 4,    ///< circular polarisation
  rr = -1,  ///< circular hands, right with right
  ll = -2,  ///< circular hands, left with left
  rl = -3,  ///< circular hands, right with left
  lr = -4,  ///< circular hands, left with right
  xx = -5,  ///< linear hands, X with X
  yy = -6,  ///< linear hands, Y with Y
  xy = -7,  ///< linear hands, X with Y
  yx = -8,  ///< linear hands, Y with X
};

std::string to_string(Stokes stokes);    ///< "I", …, "YX"
std::string stokes_text(Stokes stokes);  ///< the same for people: "Stokes Q", "correlation XX"

/// Whether brightness of it is never below 0: I, and hands with themselves; not Q, U, V and cross hands.
bool is_intensity(Stokes stokes);

/// The one of a name as to_string() gives it. @throws ValueError for other names
Stokes stokes_from_name(std::string_view name);
/// The one of a number of the FITS standard; nothing for numbers that name none.
std::optional<Stokes> stokes_from_number(double number);

}  // namespace mpol
