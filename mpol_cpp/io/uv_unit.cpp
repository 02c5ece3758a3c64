#include <mpol_cpp/io/uv_unit.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/rounded_down.h>
#include <mpol_cpp/core/units.h>

namespace mpol::io {
namespace {

constexpr std::array<std::pair<std::string_view, UvUnit>, 3> names{
    {{"lambda", UvUnit::lambda}, {"klambda", UvUnit::klambda}, {"m", UvUnit::metres}}};

/// Wavelengths of one unit; 0 for metres when no frequency is known.
double wavelengths_per(UvUnit unit, const Tensor& frequencies) {
  if (unit == UvUnit::lambda) return 1;
  if (unit == UvUnit::klambda) return 1000;
  return frequencies.defined() ? units::metres_to_lambda(1, frequencies.max().item<double>()) : 0.0;
}

/// "in klambda it would be 4.7e+08 lambda, in m …": the readings other than the one used, those inside the grid marked.
std::string other_readings(double number, UvUnit used, const Tensor& frequencies, double least, double most) {
  std::string text;
  for (const auto& [name, unit] : names) {
    const double length = number * wavelengths_per(unit, frequencies);
    if (unit == used || length == 0) continue;
    text += fmt::format("{}read in {} it would be {:.4g} lambda{}", text.empty() ? "" : ", ", name, length,
                        length >= least && length < most ? ", which fits" : "");
  }
  return text;
}

}  // namespace

UvUnit uv_unit_from_name(std::string_view name) {
  for (const auto& [known, unit] : names) {
    if (known == name) return unit;
  }
  throw ValueError(fmt::format("uv unit '{}' is unknown; use lambda, klambda or m", name));
}

std::string_view name_of(UvUnit unit) {
  return std::find_if(names.begin(), names.end(), [&](const auto& entry) { return entry.second == unit; })->first;
}

void check_uv_unit(const Visibilities& visibilities, const GridCoords& coords, UvUnit used) {
  const auto& baselines = visibilities.baselines();
  check_uv_unit(std::max(baselines.max_abs_u(), baselines.max_abs_v()), visibilities.frequencies(), coords, used);
}

void check_uv_unit(double longest, const Tensor& frequencies, const GridCoords& coords, UvUnit used) {
  const double least = 2 * coords.du();
  const double most = coords.max_uv();
  if (longest >= least && longest < most) return;
  const double per_unit = wavelengths_per(used, frequencies);
  const double number = per_unit > 0 ? longest / per_unit : longest;
  const auto readings = other_readings(number, used, frequencies, least, most);
  const auto what = fmt::format("the largest |u| or |v|, {:.4g} read in {}, is {:.4g} lambda", number, name_of(used), longest);
  if (longest < least) {
    throw DataError(fmt::format(
        "{}: below two cells of the grid ({:.4g} lambda); {}; state the unit (--uv-unit), or use more or larger pixels", what,
        least, readings));
  }
  throw DataError(
      fmt::format("{}: beyond the edge of the grid ({:.4g} lambda); {}; state the unit (--uv-unit), or use cell_size < {}\"",
                  what, most, readings, rounded_down(maximum_cell_size(longest, coords.npix()))));
}

}  // namespace mpol::io
