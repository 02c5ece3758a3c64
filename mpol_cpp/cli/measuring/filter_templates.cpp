#include <mpol_cpp/cli/measuring/filter_templates.h>

#include <cmath>
#include <filesystem>

#include <mpol_cpp/analysis/matched_filter.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/file_list.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/regrid.h>
#include <mpol_cpp/simulation/keplerian_disc.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol::cli {
namespace {

/// The option's value where it is needed beside --keplerian.
double needed(const std::optional<double>& value, const std::string& option) {
  if (value) return *value;
  throw UsageError(error_text(option, "missing", "a disc in Keplerian rotation needs it", "add it, or leave --keplerian out"));
}

KeplerianDisc disc_of(const TemplateOptions& templates) {
  KeplerianDisc disc;
  disc.mass = needed(templates.mass, "--mass");
  disc.distance = needed(templates.distance, "--distance");
  disc.outer_radius = needed(templates.outer_radius, "--outer-radius");
  disc.inner_radius = templates.inner_radius.value_or(0.1 * disc.outer_radius);
  if (disc.inner_radius >= disc.outer_radius) {
    throw UsageError(error_text("--inner-radius", fmt::format("{}", disc.inner_radius),
                                fmt::format("must be below --outer-radius {}", disc.outer_radius), "lower it"));
  }
  disc.inclination = templates.inclination * units::degree;
  disc.position_angle = templates.position_angle * units::degree;
  disc.offset_east = templates.offset_east;
  disc.offset_north = templates.offset_north;
  disc.brightness_index = templates.brightness_index;
  disc.line_width = templates.line_width;
  return disc;
}

/// A cube from a file on its own grid, or on the one that was asked for, in the order of the data's channels.
LineTemplate template_of_file(const std::filesystem::path& path, const DataOptions& data, const Visibilities& visibilities) {
  auto image = read_sky_image(path, "--template");
  warn_of_other_center("--template", path, image, visibilities.observation(), "the data");
  const GridCoords coords(data.cell_size.value_or(image.coords.cell_size()), data.npix.value_or(image.coords.npix()));
  auto cube = coords == image.coords ? image.cube : regrid(image.cube, image.coords, coords);
  const auto &of_template = image.header.frequencies(), &of_data = visibilities.frequencies();
  const bool known = of_template.defined() && of_data.defined();
  if (!known && cube.size(0) > 1) {
    log_warning(error_text("--template", path.string(),
                           fmt::format("the frequencies of {} are not known", of_data.defined() ? "its channels" : "the data"),
                           "its channels are taken to be as wide as the data's and in their order"));
  }
  try {
    if (known) cube = in_channel_order(cube, of_template, of_data);
  } catch (const DataError& error) {
    throw DataError(fmt::format("--template: {}: {}", path.string(), error.what()));
  }
  return {path.filename().string(), cube, coords};
}

/// The grid that was asked for; what of it was not, from the finest fringe of the data and the extent of the disc.
GridCoords disc_grid(const KeplerianDisc& disc, const DataOptions& data, const Visibilities& visibilities) {
  const double cell_size = data.cell_size ? *data.cell_size : suggested_cell_size(summarize_uv(visibilities.baselines()));
  const double field = 2 * disc.half_width() + 2 * cell_size;
  const GridCoords coords(cell_size, data.npix ? *data.npix : pixels_for(1.25 * field, cell_size));
  const double width = coords.cell_size() * static_cast<double>(coords.npix());
  if (width >= field) return coords;
  throw DataError(error_text("--npix", fmt::format("{}", coords.npix()),
                             fmt::format("makes a field of {:.4g}\", the disc needs {:.4g}\"", width, field),
                             "raise --npix or --cell-size, or lower --outer-radius"));
}

LineTemplate template_of_disc(const TemplateOptions& templates, const DataOptions& data, const Visibilities& visibilities) {
  const auto disc = disc_of(templates);
  const auto& frequencies = visibilities.frequencies();
  if (!frequencies.defined()) {
    throw DataError(error_text("--keplerian", data.data.string(), "has no frequencies, which make the velocities of its channels",
                               "add --frequency"));
  }
  const double spacing = channel_spacing(frequencies, "the data");
  // Where nobody knows the line, the middle of the band makes the same velocities, to the band's share of its frequency.
  const double rest = line_frequency(templates, visibilities).value_or(frequencies.mean().item<double>());
  const auto width = line_width_in_channels(disc, spacing, rest);
  if (width > visibilities.nchan()) {
    throw DataError(error_text("--keplerian", fmt::format("a line of {:.4g} km/s", 2 * disc.velocity_extent()),
                               fmt::format("has {} of the data's {} channels", width, visibilities.nchan()),
                               "raise --inner-radius, where the gas is fastest, or give more channels"));
  }
  const auto coords = disc_grid(disc, data, visibilities);
  return {"keplerian", line_channels(disc, coords, spacing, rest), coords};
}

}  // namespace

void declare(OptionSet& options, TemplateOptions& templates) {
  options.text("--template", templates.files, "FILE[,FILE...]",
               "Cubes in FITS files to look for, each with the channel width of the data; write \\, for a comma in a name",
               Record::result);
  options.flag("--keplerian", templates.keplerian, "Look for a thin disc in Keplerian rotation", Record::result);
  options.number("--mass", templates.mass, Range::positive(), "MSUN", "Disc: mass of its star", Record::result);
  options.number("--distance", templates.distance, Range::positive(), "PC", "Disc: distance", Record::result);
  options.number("--inclination", templates.inclination, Range::between(0, 89), "DEG", "Disc: inclination, 0: face on",
                 Record::result);
  options.number("--position-angle", templates.position_angle, Range::any(), "DEG",
                 "Disc: of the red-shifted end of its major axis, North through East", Record::result);
  options.number("--offset-east", templates.offset_east, Range::any(), "ARCSEC", "Disc: of its star from the phase centre",
                 Record::result);
  options.number("--offset-north", templates.offset_north, Range::any(), "ARCSEC", "Disc: of its star from the phase centre",
                 Record::result);
  options.number("--inner-radius", templates.inner_radius, Range::positive(), "ARCSEC",
                 "Disc: where its gas begins; default: a tenth of the outer radius", Record::result);
  options.number("--outer-radius", templates.outer_radius, Range::positive(), "ARCSEC", "Disc: where its gas ends",
                 Record::result);
  options.number("--brightness-index", templates.brightness_index, Range::between(-10, 10), "P",
                 "Disc: the brightness of the line falls with the radius to this power", Record::result);
  options.number("--line-width", templates.line_width, Range::positive(), "KM_S",
                 "Disc: full width at half maximum of the line at one place", Record::result);
  options.number("--line-frequency", templates.line_frequency, Range::positive(), "HZ",
                 "Rest frequency of the line, for velocities; default: as the data say", Record::result);
  options.only({"--mass", "--distance", "--inclination", "--position-angle", "--offset-east", "--offset-north", "--inner-radius",
                "--outer-radius", "--brightness-index", "--line-width"},
               "with --keplerian", [&templates] { return templates.keplerian; });
}

void settle(TemplateOptions& templates) {
  std::vector<std::string> files;
  for (const auto& file : split_file_list(templates.files))
    files.push_back(std::filesystem::absolute(file).lexically_normal().string());
  templates.files = join_file_list(files);
  if (files.empty() && !templates.keplerian) {
    throw UsageError(error_text("--template", "missing", "there must be a line to look for",
                                "name a cube in a FITS file, or add --keplerian"));
  }
  if (templates.keplerian) disc_of(templates).check();
}

std::optional<double> line_frequency(const TemplateOptions& templates, const Visibilities& visibilities) {
  return templates.line_frequency ? templates.line_frequency : visibilities.observation().rest_frequency;
}

std::vector<LineTemplate> line_templates(const TemplateOptions& templates, const DataOptions& data,
                                         const Visibilities& visibilities) {
  std::vector<LineTemplate> all;
  for (const auto& file : split_file_list(templates.files)) {
    all.push_back(template_of_file(file, data, visibilities));
    stop_if_requested();
  }
  if (templates.keplerian) all.push_back(template_of_disc(templates, data, visibilities));
  return all;
}

}  // namespace mpol::cli
