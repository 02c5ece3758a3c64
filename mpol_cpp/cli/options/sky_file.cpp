#include <mpol_cpp/cli/options/sky_file.h>

#include <cmath>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/regrid.h>
#include <mpol_cpp/visibilities/phase_center.h>

namespace mpol::cli {
namespace {

constexpr double same_cell = 1e-4;  // relative difference of cell sizes that headers may round away

[[noreturn]] void refuse(const std::string& option, const std::filesystem::path& path, const std::string& limit,
                         const std::string& remedy) {
  throw DataError(error_text(option, path.string(), limit, remedy));
}

/// An offset, whole cells where it is so many but for what headers round.
double whole_cells(double offset, const GridCoords& coords) {
  const double cells = std::round(offset / coords.cell_size());
  return std::abs(offset / coords.cell_size() - cells) < same_cell ? cells * coords.cell_size() : offset;
}

/// How the pixels of an image lie among those of the run.
struct Placement {
  GridCoords from;
  SkyOffset offset;  ///< of its middle, arcsec
  bool as_they_are;  ///< pixels of one size and place
};

/// The cells of a run, for images whose pixels are none of any grid.
SkyCells cells_of(const SkyTarget& target) { return {target.coords.cell_size(), target.observation.center}; }

Placement placement_of(const SkyImage& image, const SkyTarget& target) {
  const auto& coords = target.coords;
  const bool same_cells = std::abs(image.coords.cell_size() / coords.cell_size() - 1) < same_cell;
  const auto &own = image.center(), &center = target.observation.center;
  const SkyOffset offset = {whole_cells(own.east - center.east, coords), whole_cells(own.north - center.north, coords)};
  const auto is_whole = [&](double arcsec) { return std::remainder(arcsec, coords.cell_size()) == 0; };
  return {same_cells ? GridCoords(coords.cell_size(), image.coords.npix()) : image.coords, offset,
          same_cells && is_whole(offset.east) && is_whole(offset.north)};
}

/// The pixels of a file on the grid of the run, in one channel or as many as the run's cube has.
Tensor on_grid(const std::filesystem::path& path, const std::string& option, const SkyTarget& target, SkyUnit unit) {
  const auto image = read_sky_image(path, option, unit, SkyFrame::own, cells_of(target));
  const auto& coords = target.coords;
  const auto channels = image.cube.size(0);
  const auto wanted = target.place.nchan > 0 ? target.place.nchan : target.nchan;
  if (channels != 1 && channels != wanted) {
    refuse(option, path, fmt::format("has {} channels, the run {}", channels, wanted), "give one channel or as many");
  }
  warn_of_other_center(option, path, image, target.observation, "the data");
  const auto place = placement_of(image, target);
  return regrid(image.cube, place.from, coords, place.offset);
}

/// Takes those of such pixels that are of the model's channels.
Tensor in_channels(const Tensor& pixels, const SkyTarget& target) {
  const auto own = pixels.size(0) == 1 ? pixels : pixels.narrow(0, target.place.first, target.nchan);
  return own.expand({target.nchan, pixels.size(1), pixels.size(2)}).clone(at::MemoryFormat::Contiguous);
}

}  // namespace

Tensor read_sky(const std::filesystem::path& path, const std::string& option, const SkyTarget& target) {
  return in_channels(on_grid(path, option, target, SkyUnit::brightness), target);
}

Tensor read_mask(const std::filesystem::path& path, const SkyTarget& target, const std::string& option) {
  const auto mask = (on_grid(path, option, target, SkyUnit::mask) >= 0.5).to(torch::kFloat64);
  if (mask.sum().item<double>() == 0) refuse(option, path, "is 0 everywhere in the image", "mark pixels of it");
  return in_channels(mask, target);
}

std::string regrid_words(const std::filesystem::path& path, const std::string& option, const SkyTarget& target, SkyUnit unit) {
  const auto image = read_sky_image(path, option, unit, SkyFrame::own, cells_of(target));
  if (auto words = reprojection_words(image); !words.empty()) return fmt::format("{}: {}", option, words);
  if (placement_of(image, target).as_they_are) return {};
  return fmt::format("{}: reprojected by exact area from pixels of {:.6g} arcsec, their middle {} of the phase centre", option,
                     image.coords.cell_size(), offset_text(image.center()));
}

}  // namespace mpol::cli
