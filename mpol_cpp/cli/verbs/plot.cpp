#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/plots/plot_input.h>
#include <mpol_cpp/cli/plots/plot_options.h>
#include <mpol_cpp/cli/plots/plot_tables.h>
#include <mpol_cpp/cli/plots/plot_visibilities.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/comparison_figure.h>
#include <mpol_cpp/plot/figures/image_figure.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp plot_help = {"plot", "Draw images, visibilities, profiles, and how a fit went",
                                "Example:\n  mpol plot disc/image.fits -o image.png --norm asinh --half-width 2\n"
                                "  mpol plot vis.npz -o vis.png\n  mpol plot disc -o training.png\n"
                                "  mpol plot disc/image.fits again/image.fits -o comparison.png"};

plot::Page page_of_image(const PlotInput& input, const PlotOptions& options) {
  const auto image = read_sky_image(input.file, "INPUT", SkyUnit::as_written, SkyFrame::own);
  auto figure = figure_options(image.header, image.cube.size(0));
  if (options.no_beam) figure.beam.reset(), figure.beams.clear();
  figure.title = options.title;
  figure.unit = unit_label(image.unit);
  figure.norm = options.color_norm();
  figure.lower = options.lower;
  figure.upper = options.upper;
  if (options.norm == ColorChoice::symmetric) figure.scale = plot::ColorScale::diverging;
  else if (options.norm != ColorChoice::automatic) figure.scale = plot::ColorScale::sequential;
  figure.half_width = options.half_width;
  figure.channels = parse_channels(options.data.channels);
  return plot::image_page(image.cube, image.coords, figure);
}

/// File names, with their folders where they are alike.
std::pair<std::string, std::string> names_of(const PlotInput& input) {
  const auto name = [](const std::filesystem::path& path) { return path.filename().string(); };
  if (name(input.file) != name(input.second)) return {name(input.file), name(input.second)};
  const auto longer = [&](const std::filesystem::path& path) { return name(path.parent_path()) + "/" + name(path); };
  if (longer(input.file) == longer(input.second)) return {"A", "B"};
  return {longer(input.file), longer(input.second)};
}

plot::Page page_of_comparison(const PlotInput& input, const PlotOptions& options) {
  const auto a = read_sky_image(input.file, "INPUT"), b = read_sky_image(input.second, "INPUT");
  check_same_grid(a, b, input.second.string());
  plot::ComparisonFigureOptions figure;
  std::tie(figure.name_a, figure.name_b) = names_of(input);
  figure.lower = options.lower;
  figure.upper = options.upper;
  figure.norm = options.color_norm();
  figure.half_width = options.half_width;
  const auto channels = parse_channels(options.data.channels);
  if (channels.size() > 1) {
    throw UsageError(error_text("--channels", options.data.channels, "a comparison shows one channel", "name one"));
  }
  if (!channels.empty()) figure.channel = channels.front();
  return plot::comparison_page(a.cube, b.cube, a.coords, figure);
}

plot::Page page_of(const PlotInput& input, PlotOptions& options) {
  switch (input.kind) {
    case PlotKind::image:
      return page_of_image(input, options);
    case PlotKind::comparison:
      return page_of_comparison(input, options);
    case PlotKind::training:
      return page_of_training(input.file, options);
    case PlotKind::profile:
      return page_of_profile(input.file, options);
    case PlotKind::residuals:
      if (input.file.extension() == ".csv") return page_of_histogram(input.file, options);
      break;
    case PlotKind::visibilities:
    case PlotKind::uv:
    case PlotKind::split:
      break;
  }
  return page_of_visibilities(input, options);
}

std::string summary_json(const PlotOptions& options) {
  return summary_text({{"figure", options.output.out.string()},
                       {"kind", name_of(options.found.kind)},
                       {"input", options.found.file.string()},
                       {"script", plot::script_of(options.output.out).string()}});
}

int make_plot(PlotOptions& options, const OptionSet& settings) {
  settle(options);
  listen_to_library(settings.verb(), options.output);
  options.found = plot_input(options.kind, options.input, options.second);
  options.data.data = options.found.file;
  settings.check_meaning();
  use_threads(options.data.threads);
  stop_if_requested();
  const auto& out = options.output.out;
  if (!plot::write_figure(out, page_of(options.found, options))) {
    throw Error(error_text("figure", out.string(), "was not drawn",
                           fmt::format("install gnuplot, or draw {} with it", plot::script_of(out).string())));
  }
  return end_verb(options.output, summary_json(options),
                  fmt::format("figure  {}\nscript  {}\n", out.string(), plot::script_of(out).string()));
}

}  // namespace

Verb add_plot(CLI::App& program) { return add_verb<PlotOptions>(program, plot_help, make_plot); }

}  // namespace mpol::cli
