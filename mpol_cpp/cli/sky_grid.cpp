#include <mpol_cpp/cli/sky_grid.h>

#include <algorithm>
#include <cmath>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/sky_unit.h>

namespace mpol::cli {
namespace {

constexpr std::int64_t most_half_pixels = 8192;

}  // namespace

SkyImage read_sky_image(const std::filesystem::path& path, const std::string& option, SkyUnit unit) {
  const auto image = io::read_fits(path);
  const auto pixels = unit == SkyUnit::brightness ? io::brightness_of(image, path) : image.cube;
  const auto refuse = [&](const std::string& limit, const std::string& remedy) {
    throw DataError(error_text(option, path.string(), limit, remedy));
  };
  if (!pixels.isfinite().all().item<bool>()) refuse("holds pixels that are not finite", "give a whole image");
  const double row = std::round(image.reference_row), column = std::round(image.reference_column);
  if (std::abs(row - image.reference_row) > 0.01 || std::abs(column - image.reference_column) > 0.01) {
    refuse("its phase centre lies between pixels", "resample it");
  }
  const auto centre_row = static_cast<std::int64_t>(row), centre_column = static_cast<std::int64_t>(column);
  const auto rows = pixels.size(1), columns = pixels.size(2);
  // The phase centre of a grid is at row npix/2, column npix/2 - 1.
  const auto half = std::max({centre_row, rows - centre_row, centre_column + 1, columns - 1 - centre_column, std::int64_t{1}});
  if (half > most_half_pixels) refuse("its phase centre is too far from its pixels", "crop or pad it");
  auto cube = at::zeros({pixels.size(0), 2 * half, 2 * half}, pixels.options());
  cube.narrow(1, half - centre_row, rows).narrow(2, half - 1 - centre_column, columns).copy_(pixels);
  auto header = io::FitsOptions().observation(image.observation).beams(image.beams);
  if (image.frequencies.defined()) header.frequencies(image.frequencies);
  return {cube, GridCoords(image.cell_size, 2 * half), unit == SkyUnit::brightness ? "Jy/arcsec2" : image.unit, header};
}

void check_same_grid(const SkyImage& a, const SkyImage& b, const std::string& name_b) {
  if (a.cube.sizes() == b.cube.sizes() && std::abs(a.coords.cell_size() / b.coords.cell_size() - 1) < 1e-6) return;
  throw DataError(error_text(
      "B", name_b,
      fmt::format("has {} channels of {} x {} pixels of {:.6g}\", A {} of {} x {} of {:.6g}\"", b.cube.size(0), b.coords.npix(),
                  b.coords.npix(), b.coords.cell_size(), a.cube.size(0), a.coords.npix(), a.coords.npix(), a.coords.cell_size()),
      "give images on the same grid"));
}

}  // namespace mpol::cli
