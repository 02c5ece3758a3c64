#include <mpol_cpp/cli/options/sky_grid.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/reproject.h>
#include <mpol_cpp/io/any_fits.h>
#include <mpol_cpp/io/sky_unit.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol::cli {
namespace {

constexpr std::int64_t most_half_pixels = 8192;

Tensor pixels_of(const io::FitsImage& image, SkyUnit unit, const std::filesystem::path& path) {
  switch (unit) {
    case SkyUnit::brightness:
      return io::brightness_of(image, path);
    case SkyUnit::mask:
      return (image.cube != 0).logical_and(image.cube == image.cube).to(torch::kFloat64);  // NaN is not equal to itself
    default:
      return image.cube;
  }
}

std::int64_t even(std::int64_t number) { return number + number % 2; }

/// Where the pixels of a file lie on a grid of 2 half x 2 half, whose middle is at row half, column half - 1.
struct GridPlace {
  std::int64_t half = 0, row = 0, column = 0;
  SkyOffset center;
  bool on_pixel = true;  ///< the phase centre is in the middle of a pixel
};

GridPlace about_phase_centre(const io::FitsImage& image, std::int64_t rows, std::int64_t columns) {
  constexpr double far = 1e9;  // pixels, which no image has
  const double row = std::clamp(std::round(image.reference_row), -far, far),
               column = std::clamp(std::round(image.reference_column), -far, far);
  const bool on_pixel = std::abs(row - image.reference_row) <= 0.01 && std::abs(column - image.reference_column) <= 0.01;
  const auto centre_row = static_cast<std::int64_t>(row), centre_column = static_cast<std::int64_t>(column);
  const auto half = std::max({centre_row, rows - centre_row, centre_column + 1, columns - 1 - centre_column, std::int64_t{1}});
  return {half, half - centre_row, half - 1 - centre_column, {}, on_pixel};
}

GridPlace about_itself(const io::FitsImage& image, std::int64_t half) {
  const auto middle = static_cast<double>(half);
  return {
      half, 0, 0, {(image.reference_column - (middle - 1)) * image.cell_size, (middle - image.reference_row) * image.cell_size}};
}

/// A grid that holds an image whose pixels are no cells of one.
struct Footprint {
  std::int64_t half = 1;  ///< of the grid's pixels
  SkyOffset center;       ///< of its middle from the phase centre
};

/// @param frame  phase_center: the middle is there, or at the cells' origin nearest to it
Footprint footprint_of(const PixelLattice& lattice, std::int64_t rows, std::int64_t columns, const SkyCells& cells,
                       SkyFrame frame) {
  std::vector<double> east, north;
  for (const double row : {-0.5, static_cast<double>(rows) - 0.5}) {
    for (const double column : {-0.5, static_cast<double>(columns) - 0.5}) {
      const auto corner = lattice.sky(row, column);
      east.push_back(corner.east);
      north.push_back(corner.north);
    }
  }
  // In cells from the middle of one: how far the image reaches, and the cell in its middle.
  const auto along = [&](std::vector<double> corners, double origin) {
    for (auto& corner : corners) corner = (corner - origin) / cells.size;
    const auto [low, high] = std::minmax_element(corners.begin(), corners.end());
    return std::pair(*low, *high);
  };
  const auto [east_low, east_high] = along(east, cells.origin.east);
  const auto [north_low, north_high] = along(north, cells.origin.north);
  const auto reach = [](double low, double high, double middle) { return std::max(high - middle, middle - low); };
  const auto half_of = [](double cells_wide) {
    return static_cast<std::int64_t>(std::ceil(std::min(cells_wide, 1e9) + 0.5)) + 1;
  };
  const auto half_about = [&](double column, double row) {
    return half_of(std::max(reach(east_low, east_high, column), reach(north_low, north_high, row)));
  };
  const double column = std::round((east_low + east_high) / 2), row = std::round((north_low + north_high) / 2);
  const auto of_origin = half_about(0, 0), of_itself = half_about(column, row);
  if (frame == SkyFrame::phase_center || of_origin <= of_itself + 1) return {of_origin, cells.origin};
  return {of_itself, {cells.origin.east + column * cells.size, cells.origin.north + row * cells.size}};
}

/// What is multiplied to a value of a pixel of one area to give that of another.
double for_area(const std::string& unit, double old_cell, double new_cell) {
  const auto before = io::unit_area(unit, {}, old_cell), after = io::unit_area(unit, {}, new_cell);
  return before && after ? after->item<double>() / before->item<double>() : 1;
}

std::string pixel_words(const PixelLattice& lattice) {
  const double turn = std::atan2(-lattice.east_per_row, lattice.north_per_row) / units::degree;
  return fmt::format("{:.6g} x {:.6g} arcsec whose columns run {:.6g} deg from North through West", lattice.width(),
                     lattice.height(), turn);
}

io::FitsOptions header_of(const io::FitsImage& image, const SkyOffset& center) {
  auto observation = image.observation;
  observation.center = center;
  auto header = io::FitsOptions().observation(std::move(observation)).beams(image.beams);
  if (image.frequencies.defined()) header.frequencies(image.frequencies);
  return header;
}

[[noreturn]] void refuse_image(const std::string& option, const std::filesystem::path& path, const std::string& limit,
                               const std::string& remedy) {
  throw DataError(error_text(option, path.string(), limit, remedy));
}

SkyImage reprojected(const io::FitsImage& image, const PixelLattice& lattice, const Tensor& pixels, SkyUnit unit,
                     const SkyCells& cells, SkyFrame frame, const std::filesystem::path& path, const std::string& option) {
  const auto footprint = footprint_of(lattice, pixels.size(1), pixels.size(2), cells, frame);
  if (footprint.half > most_half_pixels)
    refuse_image(option, path, fmt::format("reaches {} cells of {:.6g} arcsec", footprint.half, cells.size), "crop or regrid it");
  const GridCoords coords(cells.size, 2 * footprint.half);
  const auto written = unit == SkyUnit::as_written ? for_area(image.unit, image.cell_size, cells.size) : 1.0;
  SkyImage sky{reproject(pixels, lattice, coords, footprint.center) * written, coords,
               unit == SkyUnit::brightness ? "Jy/arcsec2" : image.unit, header_of(image, footprint.center), pixel_words(lattice)};
  log_info(fmt::format("{}: {} has {}", option, path.string(), reprojection_words(sky)));
  return sky;
}

}  // namespace

std::string reprojection_words(const SkyImage& image) {
  if (image.pixels.empty()) return {};
  return fmt::format("pixels of {}; reprojected by exact area to {:.6g} arcsec with North up", image.pixels,
                     image.coords.cell_size());
}

void add_reprojection(std::vector<std::string>& history, const SkyImage& image) {
  if (auto words = reprojection_words(image); !words.empty()) history.push_back("image with " + std::move(words));
}

SkyImage read_sky_image(const std::filesystem::path& path, const std::string& option, SkyUnit unit, SkyFrame frame,
                        const std::optional<SkyCells>& cells) {
  const auto read = io::read_any_fits(path);
  const auto& image = read.image;
  const auto pixels = pixels_of(image, unit, path);
  if (!pixels.isfinite().all().item<bool>()) refuse_image(option, path, "holds pixels that are not finite", "give a whole image");
  if (read.lattice) {
    const SkyCells narrower{std::min(read.lattice->width(), read.lattice->height()), {}};
    return reprojected(image, *read.lattice, pixels, unit, cells.value_or(narrower), frame, path, option);
  }
  const auto rows = pixels.size(1), columns = pixels.size(2);
  auto place = about_phase_centre(image, rows, columns);
  const auto smallest = even(std::max({rows, columns, std::int64_t{2}}));
  const bool suits = place.on_pixel && 2 * place.half <= smallest + 2 && place.half <= most_half_pixels;
  if (frame == SkyFrame::own && !suits) {
    place = about_itself(image, smallest / 2);
  } else if (!place.on_pixel) {
    refuse_image(option, path, "its phase centre lies between pixels", "resample it");
  }
  if (place.half > most_half_pixels) refuse_image(option, path, "its phase centre is too far from its pixels", "crop or pad it");
  auto cube = at::zeros({pixels.size(0), 2 * place.half, 2 * place.half}, pixels.options());
  cube.narrow(1, place.row, rows).narrow(2, place.column, columns).copy_(pixels);
  return {cube,
          GridCoords(image.cell_size, 2 * place.half),
          unit == SkyUnit::brightness ? "Jy/arcsec2" : image.unit,
          header_of(image, place.center),
          {}};
}

SkyImage with_channels(SkyImage image, const std::vector<std::int64_t>& channels) {
  if (channels.empty()) return image;
  const auto there = image.cube.size(0);
  for (const auto channel : channels) {
    if (channel < there) continue;
    throw UsageError(error_text("--channels", fmt::format("{}", channel),
                                fmt::format("the image has {} channel(s), counted from 0", there), "choose others"));
  }
  const auto index = at::tensor(channels, torch::kInt64);
  image.cube = image.cube.index_select(0, index);
  auto& header = image.header;
  if (header.frequencies().defined()) header.frequencies(header.frequencies().index_select(0, index));
  if (header.beams().size() != static_cast<std::size_t>(there)) return image;  // one beam of all channels, or none
  std::vector<Beam> beams;
  beams.reserve(channels.size());
  for (const auto channel : channels) beams.push_back(header.beams()[static_cast<std::size_t>(channel)]);
  header.beams(beams);
  return image;
}

void warn_of_other_centre(const std::string& option, const std::filesystem::path& path, const SkyImage& image,
                          const Observation& observation, const std::string& others) {
  const auto& own = image.header.observation();
  const auto distance = phase_centre_distance(own, observation);
  if (!distance || *distance / units::arcsec <= 0.1 * image.coords.cell_size()) return;
  log_warning(error_text(option, path.string(),
                         fmt::format("its phase centre is {}, that of {} {}, {:.4g} arcsec away", phase_centre_text(own), others,
                                     phase_centre_text(observation), *distance / units::arcsec),
                         "it is taken as if they were the same: shift it unless they are"));
}

void check_same_grid(const SkyImage& a, const SkyImage& b, const std::string& name_b) {
  warn_of_other_centre("B", name_b, b, a.header.observation(), "A");
  if (a.cube.sizes() == b.cube.sizes() && std::abs(a.coords.cell_size() / b.coords.cell_size() - 1) < 1e-6) return;
  throw DataError(error_text(
      "B", name_b,
      fmt::format("has {} channels of {} x {} pixels of {:.6g}\", A {} of {} x {} of {:.6g}\"", b.cube.size(0), b.coords.npix(),
                  b.coords.npix(), b.coords.cell_size(), a.cube.size(0), a.coords.npix(), a.coords.npix(), a.coords.cell_size()),
      "give images on the same grid"));
}

}  // namespace mpol::cli
