#include <mpol_cpp/cli/options/sky_grid.h>

#include <algorithm>
#include <cmath>
#include <numeric>
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

GridPlace about_phase_center(const io::FitsImage& image, std::int64_t rows, std::int64_t columns) {
  constexpr double far = 1e9;  // pixels, which no image has
  const double row = std::clamp(std::round(image.reference_row), -far, far),
               column = std::clamp(std::round(image.reference_column), -far, far);
  const bool on_pixel = std::abs(row - image.reference_row) <= 0.01 && std::abs(column - image.reference_column) <= 0.01;
  const auto center_row = static_cast<std::int64_t>(row), center_column = static_cast<std::int64_t>(column);
  const auto half = std::max({center_row, rows - center_row, center_column + 1, columns - 1 - center_column, std::int64_t{1}});
  return {half, half - center_row, half - 1 - center_column, {}, on_pixel};
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
  const auto from_east = along(east, cells.origin.east), from_north = along(north, cells.origin.north);
  using Ends = std::pair<double, double>;
  const auto reach = [](const Ends& ends, double middle) { return std::max(ends.second - middle, middle - ends.first); };
  const auto middle_of = [](const Ends& ends) { return std::round((ends.first + ends.second) / 2); };
  const auto half_of = [](double cells_wide) {
    return static_cast<std::int64_t>(std::ceil(std::min(cells_wide, 1e9) + 0.5)) + 1;
  };
  const auto half_about = [&](double column, double row) {
    return half_of(std::max(reach(from_east, column), reach(from_north, row)));
  };
  const double column = middle_of(from_east), row = middle_of(from_north);
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

[[noreturn]] void refuse_image(const std::string& option, const std::filesystem::path& path, const std::string& limit,
                               const std::string& remedy) {
  throw DataError(error_text(option, path.string(), limit, remedy));
}

/// @throws DataError where the pixels cannot lie so
GridPlace place_of(const io::FitsImage& image, std::int64_t rows, std::int64_t columns, SkyFrame frame,
                   const std::filesystem::path& path, const std::string& option) {
  auto place = about_phase_center(image, rows, columns);
  const auto smallest = even(std::max({rows, columns, std::int64_t{2}}));
  const bool suits = place.on_pixel && 2 * place.half <= smallest + 2 && place.half <= most_half_pixels;
  if (frame == SkyFrame::own && !suits) {
    place = about_itself(image, smallest / 2);
  } else if (!place.on_pixel) {
    refuse_image(option, path, "its phase centre lies between pixels", "resample it");
  }
  if (place.half > most_half_pixels) refuse_image(option, path, "its phase centre is too far from its pixels", "crop or pad it");
  return place;
}

/// Blank pixels (NaN; infinite ones are read as such), as beyond the primary beam of CASA's images, become 0, which is said once
/// of a file.
/// @param said  whether it was
Tensor without_blanks(const Tensor& pixels, const std::filesystem::path& path, const std::string& option, bool& said) {
  const auto blank = pixels.isfinite().logical_not();
  if (!blank.any().item<bool>()) return pixels;
  if (!std::exchange(said, true)) {
    const auto count = blank.sum().item<std::int64_t>();
    log_warning(error_text(option, path.string(),
                           fmt::format("has blank pixels (NaN), {:.2g} % of {}",
                                       100.0 * static_cast<double>(count) / static_cast<double>(pixels.numel()),
                                       pixels.dim() > 2 && pixels.size(0) > 1 ? "all" : "a channel"),
                           "they are taken as 0, so that what overlaps them is too faint"));
  }
  return pixels.masked_fill(blank, 0);
}

Tensor on_grid(const Tensor& pixels, std::int64_t half, std::int64_t row, std::int64_t column) {
  auto cube = at::zeros({pixels.size(0), 2 * half, 2 * half}, pixels.options());
  cube.narrow(1, row, pixels.size(1)).narrow(2, column, pixels.size(2)).copy_(pixels);
  return cube;
}

io::FitsOptions header_of(const io::FitsImage& image, const SkyOffset& center) {
  auto observation = image.observation;
  observation.center = center;
  auto header = io::FitsOptions().planes(image.planes).observation(std::move(observation)).beams(image.beams);
  header.sample_errors(image.sample_errors);
  if (image.frequencies.defined()) header.frequencies(image.frequencies);
  return header;
}

/// Whether HISTORY says that mpol pbcor has divided an image.
bool is_divided(const io::FitsImage& image) {
  return std::any_of(image.history.begin(), image.history.end(),
                     [](const std::string& line) { return line.find(divided_by_beam) != std::string::npos; });
}

void check_channels(const std::vector<std::int64_t>& channels, std::int64_t there) {
  for (const auto channel : channels) {
    if (channel < there) continue;
    throw UsageError(error_text("--channels", fmt::format("{}", channel),
                                fmt::format("the image has {} channel(s), counted from 0", there), "choose others"));
  }
}

/// Frequencies and beams of some channels.
void choose_channels(io::FitsOptions& header, const std::vector<std::int64_t>& channels, std::int64_t there) {
  if (header.frequencies().defined())
    header.frequencies(header.frequencies().index_select(0, at::tensor(channels, torch::kInt64)));
  if (header.beams().size() != static_cast<std::size_t>(there)) return;  // one beam of all channels, or none
  std::vector<Beam> beams;
  beams.reserve(channels.size());
  for (const auto channel : channels) beams.push_back(header.beams()[static_cast<std::size_t>(channel)]);
  header.beams(beams);
}

std::vector<std::int64_t> all_channels(std::int64_t count) {
  std::vector<std::int64_t> channels(static_cast<std::size_t>(count));
  std::iota(channels.begin(), channels.end(), 0);
  return channels;
}

/// The grid that an image of oblong or turned pixels is brought to, with all but its pixels.
SkyImage lattice_grid(const io::FitsImage& image, const PixelLattice& lattice, std::int64_t rows, std::int64_t columns,
                      const SkyCells& cells, SkyFrame frame, const std::filesystem::path& path, const std::string& option) {
  const auto footprint = footprint_of(lattice, rows, columns, cells, frame);
  if (footprint.half > most_half_pixels)
    refuse_image(option, path, fmt::format("reaches {} cells of {:.6g} arcsec", footprint.half, cells.size), "crop or regrid it");
  SkyImage sky{{},
               GridCoords(cells.size, 2 * footprint.half),
               image.unit,
               header_of(image, footprint.center),
               pixel_words(lattice),
               is_divided(image)};
  log_info(fmt::format("{}: {} has {}", option, path.string(), reprojection_words(sky)));
  return sky;
}

/// Square cells as wide as the narrower side of a lattice's pixels.
SkyCells narrower_cells(const PixelLattice& lattice) { return {std::min(lattice.width(), lattice.height()), {}}; }

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
  bool said = false;
  const auto pixels = without_blanks(pixels_of(image, unit, path), path, option, said);
  const auto named = unit == SkyUnit::brightness ? "Jy/arcsec2" : image.unit;
  if (!read.lattice) {
    const auto place = place_of(image, pixels.size(1), pixels.size(2), frame, path, option);
    return {on_grid(pixels, place.half, place.row, place.column),
            GridCoords(image.cell_size, 2 * place.half),
            named,
            header_of(image, place.center),
            {},
            is_divided(image)};
  }
  auto sky = lattice_grid(image, *read.lattice, pixels.size(1), pixels.size(2), cells.value_or(narrower_cells(*read.lattice)),
                          frame, path, option);
  const auto written = unit == SkyUnit::as_written ? for_area(image.unit, image.cell_size, sky.coords.cell_size()) : 1.0;
  sky.unit = named;
  sky.cube = reproject(pixels, *read.lattice, sky.coords, sky.center()) * written;
  return sky;
}

SkyCube::SkyCube(const std::filesystem::path& path, const std::string& option, const std::vector<std::int64_t>& channels,
                 SkyUnit unit, SkyFrame frame)
    : file_(path, io::FitsPixels::any),
      path_(path),
      option_(option),
      channels_(channels.empty() ? all_channels(file_.nchan()) : channels),
      image_([&]() -> SkyImage {
        check_channels(channels_, file_.nchan());
        const auto& header = file_.header();
        if (const auto& lattice = file_.lattice()) {
          return lattice_grid(header, *lattice, file_.rows(), file_.columns(), narrower_cells(*lattice), frame, path, option);
        }
        const auto place = place_of(header, file_.rows(), file_.columns(), frame, path, option);
        row_ = place.row;
        column_ = place.column;
        return {{},          GridCoords(header.cell_size, 2 * place.half),
                header.unit, header_of(header, place.center),
                {},          is_divided(header)};
      }()) {
  choose_channels(image_.header, channels_, file_.nchan());
  if (unit != SkyUnit::brightness) return;
  area_ = io::brightness_area(file_.header(), file_.nchan(), path);
  image_.unit = "Jy/arcsec2";
}

double SkyCube::bytes_of_channel() const {
  const auto side = static_cast<double>(image_.coords.npix());
  const auto pixels = static_cast<double>(file_.rows()) * static_cast<double>(file_.columns());
  // Beside the block there is one channel of the file at a time, as it lies there and turned, or brought to the grid.
  return sizeof(double) * (side * side + 2 * pixels + (file_.lattice() ? 2 * side * side : 0));
}

Tensor SkyCube::read(std::int64_t begin, std::int64_t end) {
  const auto side = image_.coords.npix();
  const auto& lattice = file_.lattice();
  auto block = at::zeros({end - begin, side, side}, torch::kFloat64);
  for (auto channel = begin; channel < end; ++channel) {
    const auto number = channels_[static_cast<std::size_t>(channel)];
    auto pixels = file_.read(number, number + 1)[0];
    pixels = without_blanks(pixels, path_, option_, said_blank_);
    if (area_.defined()) pixels.div_(area_[area_.size(0) == 1 ? 0 : number]);
    if (lattice) {
      const auto written = area_.defined() ? 1.0 : for_area(image_.unit, file_.header().cell_size, image_.coords.cell_size());
      block[channel - begin] = reproject(pixels, *lattice, image_.coords, image_.center()) * written;
    } else {
      block[channel - begin].narrow(0, row_, pixels.size(0)).narrow(1, column_, pixels.size(1)).copy_(pixels);
    }
  }
  return block;
}

SkyImage with_channels(SkyImage image, const std::vector<std::int64_t>& channels) {
  if (channels.empty()) return image;
  const auto there = image.cube.size(0);
  check_channels(channels, there);
  image.cube = image.cube.index_select(0, at::tensor(channels, torch::kInt64));
  choose_channels(image.header, channels, there);
  return image;
}

void warn_of_other_center(const std::string& option, const std::filesystem::path& path, const SkyImage& image,
                          const Observation& observation, const std::string& others) {
  const auto& own = image.header.observation();
  const auto distance = phase_center_distance(own, observation);
  if (!distance || *distance / units::arcsec <= 0.1 * image.coords.cell_size()) return;
  log_warning(error_text(option, path.string(),
                         fmt::format("its phase centre is {}, that of {} {}, {:.4g} arcsec away", phase_center_text(own), others,
                                     phase_center_text(observation), *distance / units::arcsec),
                         "it is taken as if they were the same: shift it unless they are"));
}

void warn_of_other_stokes(const std::string& option, const std::filesystem::path& path, const SkyImage& image,
                          const Observation& observation, const std::string& others) {
  const auto own = image.header.observation().stokes;
  if (own == observation.stokes) return;
  log_warning(error_text(option, path.string(),
                         fmt::format("is of {}, {} of {}", stokes_text(own), others, stokes_text(observation.stokes)),
                         "they are compared as they are: take both of one unless that is meant"));
}

void check_same_grid(const SkyImage& a, const SkyImage& b, const std::string& name_b) {
  warn_of_other_center("B", name_b, b, a.header.observation(), "A");
  warn_of_other_stokes("B", name_b, b, a.header.observation(), "A");
  if (a.cube.sizes() == b.cube.sizes() && std::abs(a.coords.cell_size() / b.coords.cell_size() - 1) < 1e-6) return;
  throw DataError(error_text(
      "B", name_b,
      fmt::format("has {} channels of {} x {} pixels of {:.6g}\", A {} of {} x {} of {:.6g}\"", b.cube.size(0), b.coords.npix(),
                  b.coords.npix(), b.coords.cell_size(), a.cube.size(0), a.coords.npix(), a.coords.npix(), a.coords.cell_size()),
      "give images on the same grid"));
}

}  // namespace mpol::cli
