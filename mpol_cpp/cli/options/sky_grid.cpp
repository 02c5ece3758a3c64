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

}  // namespace

SkyImage read_sky_image(const std::filesystem::path& path, const std::string& option, SkyUnit unit, SkyFrame frame) {
  const auto image = io::read_fits(path);
  const auto pixels = pixels_of(image, unit, path);
  const auto refuse = [&](const std::string& limit, const std::string& remedy) {
    throw DataError(error_text(option, path.string(), limit, remedy));
  };
  if (!pixels.isfinite().all().item<bool>()) refuse("holds pixels that are not finite", "give a whole image");
  const auto rows = pixels.size(1), columns = pixels.size(2);
  auto place = about_phase_centre(image, rows, columns);
  const auto smallest = even(std::max({rows, columns, std::int64_t{2}}));
  const bool suits = place.on_pixel && 2 * place.half <= smallest + 2 && place.half <= most_half_pixels;
  if (frame == SkyFrame::own && !suits) {
    place = about_itself(image, smallest / 2);
  } else if (!place.on_pixel) {
    refuse("its phase centre lies between pixels", "resample it");
  }
  if (place.half > most_half_pixels) refuse("its phase centre is too far from its pixels", "crop or pad it");
  auto cube = at::zeros({pixels.size(0), 2 * place.half, 2 * place.half}, pixels.options());
  cube.narrow(1, place.row, rows).narrow(2, place.column, columns).copy_(pixels);
  auto observation = image.observation;
  observation.center = place.center;
  auto header = io::FitsOptions().observation(std::move(observation)).beams(image.beams);
  if (image.frequencies.defined()) header.frequencies(image.frequencies);
  return {cube, GridCoords(image.cell_size, 2 * place.half), unit == SkyUnit::brightness ? "Jy/arcsec2" : image.unit, header};
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
