#include <mpol_cpp/io/axes/fits_axes.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/axes/stokes_axis.h>

namespace mpol::io {
namespace {

constexpr double relative_tolerance = 1e-6;

std::string indexed(const char* stem, int axis) { return fmt::format("{}{}", stem, axis); }

/// The step of an axis: CDELT (with PC if there), or the diagonal of CD.
std::optional<double> step_of(HeaderReader& header, int axis) {
  if (const auto cd = header.number(fmt::format("CD{0}_{0}", axis))) return cd;
  const auto step = header.number(indexed("CDELT", axis));
  if (!step) return std::nullopt;
  return *step * header.number(fmt::format("PC{0}_{0}", axis)).value_or(1.0);
}

/// Refuses axes that are rotated against North and East.
void check_not_rotated(FitsHandle& file, const std::filesystem::path& path, double step) {
  HeaderReader header(file);
  const double pc = std::max(std::abs(header.number("PC1_2").value_or(0)), std::abs(header.number("PC2_1").value_or(0)));
  const double cd = std::max(std::abs(header.number("CD1_2").value_or(0)), std::abs(header.number("CD2_1").value_or(0)));
  const double rotation = std::abs(header.number("CROTA2").value_or(0));
  if (pc <= relative_tolerance && cd <= relative_tolerance * std::abs(step) && rotation <= relative_tolerance) return;
  throw DataError(
      fmt::format("{}: its axes are rotated (PC1_2 {:.3g}, CD1_2 {:.3g}, CROTA2 {:.3g} deg); North must be up: regrid it",
                  path.string(), pc, cd, rotation));
}

void check_order(const std::vector<FitsAxis>& axes, const std::filesystem::path& path) {
  if (!axes[0].type.starts_with("DEC") && !axes[1].type.starts_with("RA")) return;
  throw DataError(
      fmt::format("{}: its first axis is '{}'; right ascension must come first: transpose it", path.string(), axes[0].type));
}

[[noreturn]] void refuse_without_size(const std::filesystem::path& path) {
  throw DataError(
      fmt::format("{}: its header does not say how large a pixel is; add CDELT1 and CDELT2 in degrees", path.string()));
}

/// Steps along axes 1 and 2 of the sky (rows), of pixels along axes 1 and 2 of the image (columns), in the axes' units.
using Steps = std::array<std::array<double, 2>, 2>;

/// The elements CDi_j or PCi_j, `otherwise` for those that are not there; nothing where none is.
std::optional<Steps> elements(HeaderReader& header, const char* stem, const Steps& otherwise) {
  auto steps = otherwise;
  bool any = false;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      const auto value = header.number(fmt::format("{}{}_{}", stem, i + 1, j + 1));
      any |= value.has_value();
      steps[i][j] = value.value_or(otherwise[i][j]);
    }
  }
  return any ? std::optional(steps) : std::nullopt;
}

/// @throws DataError where CDELT is needed and not there
Steps steps_of(FitsHandle& file, const std::filesystem::path& path) {
  HeaderReader header(file);
  if (const auto cd = elements(header, "CD", {})) return *cd;
  const double width = header.number("CDELT1").value_or(0), height = header.number("CDELT2").value_or(0);
  if (width == 0 || height == 0) refuse_without_size(path);
  if (const auto pc = elements(header, "PC", {{{1, 0}, {0, 1}}})) {
    const auto& p = *pc;
    return {{{width * p[0][0], width * p[0][1]}, {height * p[1][0], height * p[1][1]}}};
  }
  const double angle = header.number("CROTA2").value_or(0) * units::degree;
  return {{{width * std::cos(angle), -height * std::sin(angle)}, {width * std::sin(angle), height * std::cos(angle)}}};
}

}  // namespace

std::optional<double> HeaderReader::number(const std::string& key) {
  double value = 0;
  fits_read_key(file_.get(), TDOUBLE, key.c_str(), &value, nullptr, file_.status());
  if (!file_.succeeded() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string HeaderReader::text(const std::string& key) {
  char value[FLEN_VALUE] = "";
  fits_read_key(file_.get(), TSTRING, key.c_str(), value, nullptr, file_.status());
  return file_.succeeded() ? std::string(value) : std::string();
}

std::vector<std::string> HeaderReader::history() {
  int cards = 0, free = 0;
  fits_get_hdrspace(file_.get(), &cards, &free, file_.status());
  std::vector<std::string> lines;
  for (int i = 1; i <= cards; ++i) {
    char card[FLEN_CARD] = "";
    fits_read_record(file_.get(), i, card, file_.status());
    if (!file_.succeeded()) break;
    const std::string line = card;
    if (line.starts_with("HISTORY ")) lines.push_back(line.substr(8));
  }
  return lines;
}

std::vector<FitsAxis> read_axes(FitsHandle& file, const std::filesystem::path& path) {
  int dimensions = 0, bits = 0;
  std::array<LONGLONG, most_axes> sizes{};
  fits_get_img_paramll(file.get(), most_axes, &bits, &dimensions, sizes.data(), file.status());
  file.check("reading the header");
  if (dimensions > most_axes)
    throw DataError(fmt::format("{}: {} axes; at most {} can be read", path.string(), dimensions, most_axes));
  HeaderReader header(file);
  std::vector<FitsAxis> axes;
  for (int number = 1; number <= dimensions; ++number) {
    axes.push_back({sizes[static_cast<std::size_t>(number - 1)], header.text(indexed("CTYPE", number)),
                    header.text(indexed("CUNIT", number)), header.number(indexed("CRPIX", number)).value_or(0),
                    header.number(indexed("CRVAL", number)).value_or(0), step_of(header, number)});
  }
  return axes;
}

double degrees_per(const std::string& unit, const std::filesystem::path& path) {
  if (unit.empty() || unit == "deg" || unit == "degree" || unit == "degrees") return 1;
  if (unit == "rad") return 1 / units::degree;
  if (unit == "arcmin") return 1.0 / 60;
  if (unit == "arcsec") return 1.0 / 3600;
  if (unit == "mas") return 1.0 / 3.6e6;
  throw DataError(
      fmt::format("{}: pixels are measured in '{}'; deg, rad, arcmin, arcsec or mas can be read", path.string(), unit));
}

double cell_size_of(FitsHandle& file, const std::vector<FitsAxis>& axes, const std::filesystem::path& path) {
  check_order(axes, path);
  if (!axes[0].step || !axes[1].step || *axes[0].step == 0 || *axes[1].step == 0) refuse_without_size(path);
  const double width = std::abs(*axes[0].step) * degrees_per(axes[0].unit, path) * 3600;
  const double height = std::abs(*axes[1].step) * degrees_per(axes[1].unit, path) * 3600;
  if (std::abs(width - height) > relative_tolerance * width) {
    throw DataError(
        fmt::format("{}: its pixels are {:.6g} x {:.6g} arcsec; they must be square: regrid it", path.string(), width, height));
  }
  check_not_rotated(file, path, *axes[0].step);
  return width;
}

PixelLattice lattice_of(FitsHandle& file, const std::vector<FitsAxis>& axes, const std::filesystem::path& path) {
  check_order(axes, path);
  const auto steps = steps_of(file, path);
  const double east = degrees_per(axes[0].unit, path) * 3600, north = degrees_per(axes[1].unit, path) * 3600;
  const PixelLattice lattice{.east_per_column = steps[0][0] * east,
                             .east_per_row = steps[0][1] * east,
                             .north_per_column = steps[1][0] * north,
                             .north_per_row = steps[1][1] * north,
                             .reference_row = axes[1].reference_pixel - 1,
                             .reference_column = axes[0].reference_pixel - 1};
  if (lattice.area() > relative_tolerance * lattice.width() * lattice.height()) return lattice;
  throw DataError(fmt::format("{}: its pixels of {:.6g} x {:.6g} arcsec have no area, by CD, or CDELT and PC; correct its header",
                              path.string(), lattice.width(), lattice.height()));
}

bool is_square_and_upright(const PixelLattice& lattice) {
  const double small = relative_tolerance * std::abs(lattice.east_per_column);
  return std::abs(lattice.east_per_row) <= small && std::abs(lattice.north_per_column) <= small &&
         std::abs(std::abs(lattice.east_per_column) - std::abs(lattice.north_per_row)) <= small;
}

bool is_stokes_axis(const FitsAxis& axis) { return axis.type.starts_with("STOKES"); }
bool is_sample_axis(const FitsAxis& axis) { return axis.type.starts_with("SAMPLE"); }

std::optional<std::size_t> plane_axis(const std::vector<FitsAxis>& axes, const std::filesystem::path& path) {
  std::optional<std::size_t> found;
  for (std::size_t i = 2; i < axes.size(); ++i) {
    if (is_stokes_axis(axes[i])) check_one_stokes_plane(axes[i], path);
    if (found && axes[i].size != 1 && axes[*found].size != 1) {
      throw DataError(fmt::format("{}: axes {} and {} both have more than one value; one axis of channels can be read",
                                  path.string(), *found + 1, i + 1));
    }
    const bool spectral = axes[i].type.starts_with("FREQ");
    if (axes[i].size != 1 || (spectral && (!found || axes[*found].size == 1))) found = i;
  }
  return found;
}

}  // namespace mpol::io
