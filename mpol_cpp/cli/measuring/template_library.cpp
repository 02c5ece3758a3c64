#include <mpol_cpp/cli/measuring/template_library.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>

#include <mpol_cpp/analysis/polar_integrator.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/measuring/template_shapes.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/npz_archive.h>

namespace mpol::cli {
namespace {

constexpr const char* polar_key = "polar";
constexpr const char* points_key = "points";
constexpr const char* images_key = "templates";

bool is_archive(const std::filesystem::path& path) { return path.extension() == ".npz"; }

[[noreturn]] void refuse_file(const std::filesystem::path& path, const std::string& limit, const std::string& remedy) {
  throw DataError(error_text("--templates", path.string(), limit, remedy));
}

/// An array of three dimensions as float64.
Tensor array_of(const io::NpzReader& file, const std::string& key) {
  const auto array = file.read(key);
  if (array.is_complex() || array.dim() != 3 || array.numel() == 0) {
    refuse_file(file.path(), fmt::format("its array '{}' has the shape ({})", key, fmt::join(array.sizes(), ", ")),
                "give real values, one template for each first index");
  }
  const auto values = array.to(torch::kFloat64);
  if (!values.isfinite().all().item<bool>()) {
    refuse_file(file.path(), fmt::format("its array '{}' has values that are not finite", key), "replace them");
  }
  return values;
}

/// Images of the sky, face on about their phase centre, in bins.
Tensor in_bins(const Tensor& images, const GridCoords& coords, const PolarGrid& grid) {
  return integrator_of({}, grid, coords).integrate(images).mean;
}

Tensor maps_of_images(const io::NpzReader& file, const PolarGrid& grid) {
  const auto images = array_of(file, images_key);
  if (!file.contains("cell_size")) refuse_file(file.path(), "has no cell_size beside its templates", "add it, in arcsec");
  const auto cell_size = file.read("cell_size");
  if (cell_size.numel() != 1 || !(cell_size.item<double>() > 0)) {
    refuse_file(file.path(), "its cell_size is no number above 0", "give the width of a pixel in arcsec");
  }
  if (images.size(1) != images.size(2) || images.size(1) % 2 != 0) {
    refuse_file(file.path(), fmt::format("its templates have {} x {} pixels", images.size(1), images.size(2)),
                "give square ones of an even number");
  }
  return in_bins(images, GridCoords(cell_size.item<double>(), images.size(1)), grid);
}

Tensor maps_as_they_are(const io::NpzReader& file, const PolarGrid& grid) {
  const auto maps = array_of(file, polar_key);
  if (maps.size(1) == grid.nr && maps.size(2) == grid.nphi) return maps;
  refuse_file(file.path(),
              fmt::format("its array '{}' has {} x {} bins, --nr and --nphi are {} and {}", polar_key, maps.size(1), maps.size(2),
                          grid.nr, grid.nphi),
              "leave these out, or make the templates anew");
}

/// Points of radius (arcsec), azimuth (degrees) and brightness, each in the bin that it lies in; beyond the radius they are left
/// out.
PolarTemplates points_of_file(const io::NpzReader& file, const PolarGrid& grid) {
  const auto points = array_of(file, points_key);
  if (points.size(2) != 3) {
    refuse_file(file.path(), fmt::format("its array '{}' has {} numbers a point", points_key, points.size(2)),
                "give radius (arcsec), azimuth (degrees) and brightness");
  }
  const auto bin = (points.select(2, 0) * (static_cast<double>(grid.nr) / grid.radius)).floor();
  const auto within = (bin >= 0).logical_and(bin < grid.nr);
  const auto azimuth =
      (points.select(2, 1) * (static_cast<double>(grid.nphi) / 360)).floor().remainder(static_cast<double>(grid.nphi));
  return {PolarPoints{bin.masked_fill(within.logical_not(), 0).to(torch::kInt64), azimuth.to(torch::kInt64),
                      points.select(2, 2) * within},
          grid.nr, grid.nphi};
}

PolarTemplates templates_of_file(const std::filesystem::path& path, const PolarGrid& grid) {
  if (!is_archive(path)) {
    const auto image = read_sky_image(path, "--templates", SkyUnit::as_written);
    return PolarTemplates(in_bins(image.cube, image.coords, grid));
  }
  const io::NpzReader file(path);
  if (file.contains(points_key)) return points_of_file(file, grid);
  if (file.contains(polar_key)) return PolarTemplates(maps_as_they_are(file, grid));
  if (file.contains(images_key)) return PolarTemplates(maps_of_images(file, grid));
  refuse_file(path, fmt::format("has none of the arrays '{}', '{}' and '{}'", images_key, polar_key, points_key),
              "add one of them");
}

Tensor all_maps(const PolarTemplates& templates) {
  return templates.maps(at::arange(templates.size(), torch::kInt64), torch::TensorOptions(torch::kFloat64));
}

}  // namespace

void declare(OptionSet& options, TemplateLibraryOptions& library) {
  options.path("--templates", library.file,
               "Templates: planes of a FITS image, or an .npz with templates and cell_size, polar, or points", Record::result);
  options.text(
      "--generate", library.shapes, "LIST",
      "Templates to make: disc:RADIUS, ring:RADIUS:WIDTH, arc:RADIUS:WIDTH:OPENING, spiral:RADIUS:WIDTH:PITCH:ARMS; each "
      "number may be FIRST..LAST..COUNT",
      Record::result);
}

void settle(TemplateLibraryOptions& library) {
  if (library.file.empty() && library.shapes.empty()) {
    throw UsageError(error_text("--templates", "missing", "there must be something to look for",
                                "name a file of templates, or shapes with --generate"));
  }
  if (!library.file.empty()) library.file = std::filesystem::absolute(library.file).lexically_normal();
}

PolarGridOptions with_bins_of_file(const TemplateLibraryOptions& library, PolarGridOptions options) {
  if (!is_archive(library.file)) return options;
  const io::NpzReader file(library.file);
  if (file.contains(points_key) || !file.contains(polar_key)) return options;
  const auto shape = file.header(polar_key).shape;
  if (shape.size() != 3 || shape[1] < 1 || shape[2] < 1) return options;  // reading it refuses it
  if (!options.nr) options.nr = shape[1];
  if (!options.nphi) options.nphi = shape[2];
  return options;
}

TemplateLibrary read_templates(const TemplateLibraryOptions& library, const PolarGrid& grid) {
  std::optional<PolarTemplates> of_file;
  std::vector<std::string> names;
  if (!library.file.empty()) {
    of_file = templates_of_file(library.file, grid);
    for (std::int64_t i = 0; i < of_file->size(); ++i)
      names.push_back(fmt::format("{}[{}]", library.file.filename().string(), i));
  }
  if (library.shapes.empty()) return {*of_file, names};
  std::vector<Tensor> maps;
  for (auto& shape : generated_templates(library.shapes, {even_edges(0, grid.radius, grid.nr), grid.nphi})) {
    names.push_back(shape.name);
    maps.push_back(shape.map);
  }
  auto generated = at::stack(maps);
  if (of_file) generated = at::cat({all_maps(*of_file), generated});
  return {PolarTemplates(generated), names};
}

}  // namespace mpol::cli
