#include <mpol_cpp/cli/options/sky_file.h>

#include <cmath>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/regrid.h>

namespace mpol::cli {
namespace {

constexpr double same_cell = 1e-4;  // relative difference of cell sizes that headers may round away

[[noreturn]] void refuse(const std::string& option, const std::filesystem::path& path, const std::string& limit,
                         const std::string& remedy) {
  throw DataError(error_text(option, path.string(), limit, remedy));
}

/// The pixels of a file on the grid of the run, in every channel of the model.
Tensor on_grid(const std::filesystem::path& path, const std::string& option, const SkyTarget& target, SkyUnit unit) {
  const auto image = read_sky_image(path, option, unit);
  const auto& coords = target.coords;
  const auto channels = image.cube.size(0);
  if (channels != 1 && channels != target.nchan) {
    refuse(option, path, fmt::format("has {} channels, the run {}", channels, target.nchan), "give one channel or as many");
  }
  warn_of_other_centre(option, path, image, target.observation, "the data");
  const bool same_cells = std::abs(image.coords.cell_size() / coords.cell_size() - 1) < same_cell;
  const auto from = same_cells ? GridCoords(coords.cell_size(), image.coords.npix()) : image.coords;
  return regrid(image.cube, from, coords).expand({target.nchan, coords.npix(), coords.npix()}).contiguous();
}

}  // namespace

Tensor read_sky(const std::filesystem::path& path, const std::string& option, const SkyTarget& target) {
  return on_grid(path, option, target, SkyUnit::brightness);
}

Tensor read_mask(const std::filesystem::path& path, const SkyTarget& target) {
  const auto mask = (on_grid(path, "--mask", target, SkyUnit::mask) >= 0.5).to(torch::kFloat64);
  if (mask.sum().item<double>() == 0) refuse("--mask", path, "is 0 everywhere in the image", "mark the pixels that may shine");
  return mask;
}

PixelMapping masked_mapping(const Tensor& mask) {
  const auto whole = softplus_mapping();
  const auto forward = [whole, mask](const Tensor& base) { return whole.forward(base) * mask.to(base.options()); };
  return {.name = "softplus with a mask", .forward = forward, .inverse = whole.inverse};
}

}  // namespace mpol::cli
