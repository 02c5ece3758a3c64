#include <mpol_cpp/cli/sky_file.h>

#include <cmath>

#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/cli/sky_grid.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/regrid.h>
#include <mpol_cpp/io/fits.h>

namespace mpol::cli {
namespace {

constexpr double same_cell = 1e-4;  // relative difference of cell sizes that headers may round away

[[noreturn]] void refuse(const std::string& option, const std::filesystem::path& path, const std::string& limit,
                         const std::string& remedy) {
  throw DataError(error_text(option, path.string(), limit, remedy));
}

/// A FITS image that lies on the grid of the run, with one channel or as many as the model.
io::FitsImage read_on_grid(const std::filesystem::path& path, const std::string& option, const GridCoords& coords,
                           std::int64_t nchan) {
  auto image = io::read_fits(path);
  const auto rows = image.cube.size(-2), columns = image.cube.size(-1), channels = image.cube.size(0);
  if (rows != coords.npix() || columns != coords.npix() || std::abs(image.cell_size / coords.cell_size() - 1) > same_cell) {
    refuse(option, path,
           fmt::format("has {} x {} pixels of {:.6g}\", the run {} of {:.6g}\"", rows, columns, image.cell_size, coords.npix(),
                       coords.cell_size()),
           "give an image on the same grid");
  }
  if (channels != 1 && channels != nchan) {
    refuse(option, path, fmt::format("has {} channels, the run {}", channels, nchan), "give one channel or as many");
  }
  return image;
}

}  // namespace

Tensor read_sky(const std::filesystem::path& path, const std::string& option, const GridCoords& coords, std::int64_t nchan) {
  const auto image = read_sky_image(path, option);
  const auto channels = image.cube.size(0);
  if (channels != 1 && channels != nchan) {
    refuse(option, path, fmt::format("has {} channels, the run {}", channels, nchan), "give one channel or as many");
  }
  const bool same_grid =
      image.coords.npix() == coords.npix() && std::abs(image.coords.cell_size() / coords.cell_size() - 1) < same_cell;
  const auto sky = same_grid ? image.cube : regrid(image.cube, image.coords, coords);
  return sky.expand({nchan, coords.npix(), coords.npix()}).contiguous();
}

Tensor read_mask(const std::filesystem::path& path, const GridCoords& coords, std::int64_t nchan) {
  const auto mask = (read_on_grid(path, "--mask", coords, nchan).cube != 0).to(torch::kFloat64);
  if (mask.sum().item<double>() == 0) refuse("--mask", path, "is 0 everywhere", "mark the pixels that may shine");
  return mask;
}

PixelMapping masked_mapping(const Tensor& mask) {
  const auto whole = softplus_mapping();
  const auto forward = [whole, mask](const Tensor& base) { return whole.forward(base) * mask.to(base.options()); };
  return {.name = "softplus with a mask", .forward = forward, .inverse = whole.inverse};
}

}  // namespace mpol::cli
