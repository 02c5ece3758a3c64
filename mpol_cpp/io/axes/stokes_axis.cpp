#include <mpol_cpp/io/axes/stokes_axis.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>

namespace mpol::io {
namespace {

/// The number of a plane, from 0, on an axis STOKES.
double stokes_number(const FitsAxis& axis, std::int64_t plane) {
  return axis.reference_value + (static_cast<double>(plane + 1) - axis.reference_pixel) * axis.step.value_or(1);
}

std::string plane_name(const FitsAxis& axis, std::int64_t plane) {
  const double number = stokes_number(axis, plane);
  const auto stokes = stokes_from_number(number);
  return stokes ? to_string(*stokes) : fmt::format("number {:g}", number);
}

}  // namespace

void write_stokes_axis(HeaderWriter& header, Stokes stokes) {
  header.axis(axis_number(ImageAxis::stokes), "STOKES", 1, static_cast<double>(stokes), 1, nullptr);
}

Stokes read_stokes_axis(const std::vector<FitsAxis>& axes, const std::filesystem::path& path) {
  const auto axis = std::find_if(axes.begin(), axes.end(), is_stokes_axis);
  if (axis == axes.end()) return Stokes::i;
  if (const auto stokes = stokes_from_number(stokes_number(*axis, 0))) return *stokes;
  log_warning(
      fmt::format("{}: its axis STOKES has the {}, which names no polarisation (1 to 4, -1 to -8); it is taken as Stokes I",
                  path.string(), plane_name(*axis, 0)));
  return Stokes::i;
}

void check_one_stokes_plane(const FitsAxis& axis, const std::filesystem::path& path) {
  if (axis.size == 1) return;
  constexpr std::int64_t most = 12;  // that are named
  std::string names;
  for (std::int64_t plane = 0; plane < std::min(axis.size, most); ++plane)
    names += (names.empty() ? "" : ", ") + plane_name(axis, plane);
  throw DataError(
      fmt::format("{}: {} Stokes planes ({}{}); one can be read: write the wanted one to a file of its own, in CASA with "
                  "imsubimage(stokes='I')",
                  path.string(), axis.size, names, axis.size > most ? ", …" : ""));
}

}  // namespace mpol::io
