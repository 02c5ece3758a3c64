#include <memory>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/output/csv_table.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/plots/plot_input.h>
#include <mpol_cpp/cli/plots/plot_options.h>
#include <mpol_cpp/cli/plots/plot_tables.h>
#include <mpol_cpp/cli/plots/plot_visibilities.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/figures/comparison_figure.h>
#include <mpol_cpp/plot/figures/image_figure.h>

namespace mpol::cli {
namespace {

/// BUNIT as people write it.
std::string unit_label(const std::string& unit) { return unit == "Jy/arcsec2" ? "Jy/arcsec²" : unit; }

plot::Renderer draw_image(const PlotInput& input, const PlotOptions& options) {
  const auto image = read_sky_image(input.file, "INPUT", SkyUnit::as_written);
  auto figure = figure_options(image.header, image.cube.size(0));
  if (options.no_beam) figure.beam.reset(), figure.beams.clear();
  figure.title = options.title;
  figure.unit = unit_label(image.unit);
  figure.norm = options.colour_norm();
  figure.lower = options.lower;
  figure.upper = options.upper;
  if (options.norm == "symmetric") {
    figure.scale = plot::ColourScale::diverging;
    if (options.upper) figure.lower = -*options.upper;
  }
  figure.half_width = options.half_width;
  figure.channels = parse_channels(options.data.channels);
  figure.render = options.render();
  return plot::write_image_figure(options.output.out, image.cube, image.coords, figure);
}

/// File names, with their folders where they are alike.
std::pair<std::string, std::string> names_of(const PlotInput& input) {
  const auto name = [](const std::filesystem::path& path) { return path.filename().string(); };
  if (name(input.file) != name(input.second)) return {name(input.file), name(input.second)};
  const auto longer = [&](const std::filesystem::path& path) { return name(path.parent_path()) + "/" + name(path); };
  if (longer(input.file) == longer(input.second)) return {"A", "B"};
  return {longer(input.file), longer(input.second)};
}

plot::Renderer draw_comparison(const PlotInput& input, const PlotOptions& options) {
  const auto a = read_sky_image(input.file, "INPUT"), b = read_sky_image(input.second, "INPUT");
  check_same_grid(a, b, input.second.string());
  plot::ComparisonFigureOptions figure;
  std::tie(figure.name_a, figure.name_b) = names_of(input);
  figure.lower = options.lower;
  figure.upper = options.upper;
  figure.norm = options.colour_norm();
  figure.half_width = options.half_width;
  figure.render = options.render();
  const auto channels = parse_channels(options.data.channels);
  if (channels.size() > 1) {
    throw UsageError(error_text("--channels", options.data.channels, "a comparison shows one channel", "name one"));
  }
  if (!channels.empty()) figure.channel = channels.front();
  return plot::write_comparison_figure(options.output.out, a.cube, b.cube, a.coords, figure);
}

plot::Renderer draw(const PlotInput& input, PlotOptions& options) {
  switch (input.kind) {
    case PlotKind::image:
      return draw_image(input, options);
    case PlotKind::comparison:
      return draw_comparison(input, options);
    case PlotKind::training:
      return draw_training(input.file, options);
    case PlotKind::profile:
      return draw_profile(input.file, options);
    case PlotKind::residuals:
      if (input.file.extension() == ".csv") return draw_histogram(input.file, options);
      break;
    case PlotKind::visibilities:
    case PlotKind::uv:
    case PlotKind::split:
      break;
  }
  return draw_visibilities(input, options);
}

/// The script of a figure that gnuplot drew.
std::string script_of(const std::filesystem::path& figure) {
  return (figure.parent_path() / "figures" / figure.stem()).string() + ".gp";
}

std::string summary_json(const PlotOptions& options, plot::Renderer renderer) {
  const bool by_gnuplot = renderer == plot::Renderer::gnuplot;
  nlohmann::ordered_json json = {{"figure", options.output.out.string()},
                                 {"kind", plot_kind_names().at(static_cast<std::size_t>(options.found.kind))},
                                 {"input", options.found.file.string()},
                                 {"renderer", by_gnuplot ? "gnuplot" : "built-in"},
                                 {"script", nullptr}};
  if (by_gnuplot) json["script"] = script_of(options.output.out);
  return summary_text(json);
}

int make_plot(PlotOptions& options, const OptionSet& settings) {
  settle(options);
  listen_to_library("plot", options.output);
  options.found = plot_input(options.kind, options.input, options.second);
  settings.check_meaning();
  use_threads(options.data.threads);
  stop_if_requested();
  const auto renderer = draw(options.found, options);
  if (options.output.json) {
    fmt::print("{}", summary_json(options, renderer));
  } else if (!options.output.quiet) {
    fmt::print("figure  {}\n", options.output.out.string());
    if (renderer == plot::Renderer::gnuplot) fmt::print("script  {}\n", script_of(options.output.out));
  }
  return exit_done;
}

}  // namespace

Verb add_plot(CLI::App& program) {
  auto* app = program.add_subcommand("plot", "Draw images, visibilities, profiles, and how a fit went");
  app->footer(
      "Example:\n  mpol plot disc/image.fits -o image.png --norm asinh --half-width 2\n"
      "  mpol plot vis.npz -o vis.png\n  mpol plot disc -o training.png\n"
      "  mpol plot disc/image.fits again/image.fits -o comparison.png");
  const auto options = std::make_shared<PlotOptions>();
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings] { return make_plot(*options, *settings); }};
}

}  // namespace mpol::cli
