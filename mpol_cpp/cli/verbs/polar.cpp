#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/options/polar_grid.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/history.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/polar_fits.h>
#include <mpol_cpp/io/sky_unit.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/polar_figure.h>
#include <mpol_cpp/plot/image_panel.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

struct PolarOptions {
  OutputOptions output;
  ImageFileOptions image;
  PolarGridOptions grid;
  std::string mode = "mean";
  std::string channels;
};

void declare(OptionSet& options, PolarOptions& polar) {
  declare(options, polar.image);
  declare(options, polar.grid);
  options.choice("--mode", polar.mode, {"mean", "sum"}, "Mean brightness of each bin, or its flux in Jy", Record::result);
  options.text("--channels", polar.channels, "LIST", "Channels to use, from 0, as in 0,3-7; default: all", Record::result);
  declare(options, polar.output);
}

/// What is written: values and their scatter in one unit.
struct PolarResult {
  PolarGrid grid;
  Tensor value;      ///< (nchan, nr, nphi) float64, in `unit`
  Tensor scatter;    ///< the same: standard deviation of the pixels; of a sum, times the bin's area
  Tensor area;       ///< (nr, nphi) arcsec^2 of the sky
  std::string unit;  ///< as BUNIT has it
  Tensor flux;       ///< (nchan) Jy in all bins; undefined where the unit of the image is not known
};

PolarResult integrate(const PolarOptions& options, const SkyImage& image) {
  PolarResult result{chosen_grid(options.grid, image.coords), {}, {}, {}, {}, {}};
  const auto integrator = integrator_of(options.grid, result.grid, image.coords);
  const auto map = integrator.integrate(image.cube);
  result.area = map.area;
  const auto per_unit = io::unit_area(image.unit, image.header.beams(), image.coords.cell_size());
  const bool known = per_unit && (per_unit->size(0) == 1 || per_unit->size(0) == image.cube.size(0));
  if (known) result.flux = map.sum.sum({1, 2}) / *per_unit;
  if (options.mode == "mean") {
    result.value = map.mean;
    result.scatter = map.variance.sqrt();
    result.unit = image.unit;
    return result;
  }
  if (!known) {
    throw DataError(error_text("--mode", "sum", fmt::format("the image is in the unit \"{}\"", image.unit),
                               "give Jy/pixel, Jy/arcsec2, or Jy/beam with its beam"));
  }
  const auto area = per_unit->reshape({-1, 1, 1});
  result.value = map.sum / area;
  result.scatter = map.variance.sqrt() * map.area / area;
  result.unit = "Jy";
  return result;
}

/// Middles of bins.
double middle_radius(const PolarResult& result, std::int64_t i) {
  return (static_cast<double>(i) + 0.5) * result.grid.radius / static_cast<double>(result.grid.nr);
}
double middle_azimuth(const PolarResult& result, std::int64_t j) {  // degrees
  return (static_cast<double>(j) + 0.5) * 360 / static_cast<double>(result.grid.nphi);
}

std::string csv(const PolarResult& result) {
  std::string text = "channel,radius_arcsec,phi_deg,value,scatter,area_arcsec2\n";
  const auto value = plot::to_vector(result.value), scatter = plot::to_vector(result.scatter),
             area = plot::to_vector(result.area);
  std::size_t place = 0;
  for (std::int64_t c = 0; c < result.value.size(0); ++c) {
    std::size_t bin = 0;
    for (std::int64_t i = 0; i < result.grid.nr; ++i) {
      const double radius = middle_radius(result, i);
      for (std::int64_t j = 0; j < result.grid.nphi; ++j, ++place, ++bin)
        fmt::format_to(std::back_inserter(text), "{},{:.10g},{:.10g},{:.17g},{:.17g},{:.17g}\n", c, radius,
                       middle_azimuth(result, j), value[place], scatter[place], area[bin]);
    }
  }
  return text;
}

/// The brightest bin of a channel.
struct Peak {
  double value, radius, azimuth;  // arcsec, degrees
};

Peak peak_of(const PolarResult& result, std::int64_t channel) {
  const auto plane = result.value[channel];
  const auto bin = plane.argmax().item<std::int64_t>();
  return {plane.flatten()[bin].item<double>(), middle_radius(result, bin / result.grid.nphi),
          middle_azimuth(result, bin % result.grid.nphi)};
}

std::string summary_json(const PolarOptions& options, const PolarResult& result) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  for (std::int64_t c = 0; c < result.value.size(0); ++c) {
    const auto peak = peak_of(result, c);
    channels.push_back(
        {{"flux_jy", nullptr}, {"peak", peak.value}, {"peak_radius_arcsec", peak.radius}, {"peak_phi_deg", peak.azimuth}});
    if (result.flux.defined()) channels.back()["flux_jy"] = result.flux[c].item<double>();
  }
  nlohmann::ordered_json json = {{"image", options.image.image.string()}, {"mode", options.mode}, {"unit", result.unit}};
  json.update(grid_summary(options.grid, result.grid));
  json.update({{"area_arcsec2", result.area.sum().item<double>()}, {"channels", channels}});
  return summary_text(json);
}

std::string words(const PolarResult& result, const OutputFolder& folder) {
  const auto peak = peak_of(result, 0);
  const auto flux = result.flux.defined() ? fmt::format("flux   {:.4g} Jy\n", result.flux[0].item<double>()) : std::string();
  return fmt::format("peak   {:.4g} {} at {:.4g}\", {:.4g} deg\n{}files  {}\n", peak.value, result.unit, peak.radius,
                     peak.azimuth, flux, folder.path().string());
}

void write_files(const PolarResult& result, const SkyImage& image, const OptionSet& settings, OutputFolder& folder) {
  auto history = history_lines("mpol polar", settings);
  history.emplace_back(
      "PHI from the major axis at the position angle, growing to the East of it; RADIUS in the plane of the disc");
  add_reprojection(history, image);
  const double width = result.grid.radius / static_cast<double>(result.grid.nr),
               step = 2 * units::pi / static_cast<double>(result.grid.nphi);
  io::write_polar_fits(folder.staged("polar.fits"), result.value, {width / 2, width}, {step / 2, step},
                       io::PolarFitsOptions()
                           .unit(result.unit)
                           .frequencies(image.header.frequencies())
                           .observation(image.header.observation())
                           .history(history));
  write_file_atomically(folder.staged("polar.csv"), csv(result));
  plot::PolarFigureOptions figure;
  figure.unit = result.unit == "Jy/arcsec2" ? "Jy/arcsec²" : result.unit == "Jy" ? "Jy in each bin" : result.unit;
  figure.outer = result.grid.radius;
  if (image.header.frequencies().defined()) figure.frequencies = plot::to_vector(image.header.frequencies());
  plot::write_figure(folder.staged("polar.png"), plot::polar_page(result.value, figure));
}

int make_polar(PolarOptions& options, const OptionSet& settings) {
  settle(options.output);
  settle(options.image);
  settings.check_meaning();
  listen_to_library("polar", options.output);
  use_threads(options.image.threads);
  OutputFolder folder(options.output.out, options.output.overwrite ? Existing::replace : Existing::refuse, "polar");
  const auto image =
      with_channels(read_sky_image(options.image.image, "IMAGE", SkyUnit::as_written), parse_channels(options.channels));
  stop_if_requested();
  const auto result = integrate(options, image);
  stop_if_requested();
  write_files(result, image, settings, folder);
  commit_with_summary(folder, summary_json(options, result), options.output, words(result, folder));
  return exit_done;
}

}  // namespace

Verb add_polar(CLI::App& program) {
  auto* app = program.add_subcommand("polar", "Show a disc in its radius and azimuth, pixels split between bins by exact area");
  app->footer("Example:\n  mpol polar disc/image.fits -o polar --inclination 35 --position-angle 60 --radius 1.2 --nr 60");
  const auto options = std::make_shared<PolarOptions>();
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings] { return make_polar(*options, *settings); }};
}

}  // namespace mpol::cli
