#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/argmax.h>
#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/measuring/polar_plan.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/options/polar_grid.h>
#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/history.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/cli/run/device_choice.h>
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

constexpr VerbHelp polar_help = {
    "polar", "Show a disc in its radius and azimuth, pixels split between bins by exact area",
    "Example:\n  mpol polar disc/image.fits -o polar --inclination 35 --position-angle 60 --radius 1.2 --nr 60"};

/// What the value of a bin is.
enum class BinValue {
  mean,  ///< brightness
  sum    ///< flux
};
constexpr auto bin_value_choices = std::to_array<NamedChoice<BinValue>>({{"mean", BinValue::mean}, {"sum", BinValue::sum}});

struct PolarOptions {
  OutputOptions output;
  ImageFileOptions image;
  PolarGridOptions grid;
  ImageComputing computing;
  BinValue mode = BinValue::mean;
  std::string channels;
  double memory_limit = 1;  ///< GiB
};

void declare(OptionSet& options, PolarOptions& polar) {
  declare(options, polar.image);
  declare(options, polar.grid);
  options.choice("--mode", polar.mode, bin_value_choices, "Mean brightness of each bin, or its flux in Jy", Record::result);
  options.text("--channels", polar.channels, "LIST", "Channels to use, from 0, as in 0,3-7; default: all", Record::result);
  declare_memory_limit(options, polar.memory_limit);
  declare(options, polar.computing);
  declare(options, polar.output);
}

/// What is made, and how.
struct PolarSetup {
  PolarGrid grid;
  PolarIntegrator integrator;
  std::string unit;              ///< of the values, as BUNIT has it
  std::optional<Tensor> per_jy;  ///< (nchan) or (1) float64: a flux in the image's unit times arcsec^2 is so many Jy; if known
};

PolarSetup setup_of(const PolarOptions& options, const SkyCube& cube) {
  const auto& image = cube.image();
  const auto grid = chosen_grid(options.grid, image.coords);
  PolarSetup setup{grid, integrator_of(options.grid, grid, image.coords), image.unit, {}};
  const auto per_jy = io::unit_area(image.unit, image.header.beams(), image.coords.cell_size());
  if (per_jy && (per_jy->size(0) == 1 || per_jy->size(0) == cube.nchan())) setup.per_jy = per_jy->expand({cube.nchan()});
  if (options.mode == BinValue::mean) return setup;
  if (!setup.per_jy) {
    throw DataError(error_text("--mode", "sum", fmt::format("the image is in the unit \"{}\"", image.unit),
                               "give Jy/pixel, Jy/arcsec2, or Jy/beam with its beam"));
  }
  setup.unit = "Jy";
  return setup;
}

/// Maps of some channels, values and their scatter in one unit.
struct PolarBlock {
  std::int64_t begin;  ///< the first channel
  Tensor value;        ///< (n, nr, nphi) float64
  Tensor scatter;      ///< the same: standard deviation of the pixels; of a sum, times the bin's area
  Tensor flux;         ///< (n) Jy in all bins; undefined where the unit of the image is not known
};

PolarBlock in_unit(const PolarOptions& options, const PolarSetup& setup, const ChannelPlan::Block& block) {
  const auto wide = [&](std::size_t i) { return block.results[i].to(torch::kFloat64); };
  const auto sum = wide(0), mean = wide(1), variance = wide(2);
  PolarBlock made{block.begin, mean, variance.sqrt(), {}};
  if (!setup.per_jy) return made;
  const auto per_jy = setup.per_jy->slice(0, block.begin, block.end);
  made.flux = sum.sum({1, 2}) / per_jy;
  if (options.mode == BinValue::mean) return made;
  const auto area = per_jy.reshape({-1, 1, 1});
  made.value = sum / area;
  made.scatter = made.scatter * setup.integrator.area() / area;
  return made;
}

/// Middles of bins.
double middle_radius(const PolarGrid& grid, std::int64_t i) {
  return (static_cast<double>(i) + 0.5) * grid.radius / static_cast<double>(grid.nr);
}
double middle_azimuth(const PolarGrid& grid, std::int64_t j) {  // degrees
  return (static_cast<double>(j) + 0.5) * 360 / static_cast<double>(grid.nphi);
}

/// What the summary says of a channel: its flux, and its brightest bin.
struct ChannelFacts {
  std::optional<double> flux;    // Jy
  double peak, radius, azimuth;  // arcsec, degrees
};

/// Takes maps block by block into files; of the maps themselves those that the figure shows are kept.
class PolarFiles {
 public:
  PolarFiles(const PolarOptions& options, const PolarSetup& setup, const SkyCube& cube, const OptionSet& settings,
             OutputFolder& folder)
      : options_(options),
        setup_(setup),
        area_(plot::to_vector(setup.integrator.area())),
        shown_(plot::shown_polar_channels(cube.nchan())),
        fits_(folder.staged("polar.fits"), axes_of(setup.grid, cube.nchan()), header_of(setup, cube.image(), settings)),
        csv_(folder.staged("polar.csv")) {
    csv_.write("channel,radius_arcsec,phi_deg,value,scatter,area_arcsec2\n");
  }

  void add(const ChannelPlan::Block& block) {
    const auto made = in_unit(options_, setup_, block);
    fits_.add(made.value);
    for (std::int64_t i = 0; i < made.value.size(0); ++i) add_channel(made, i);
  }

  void finish(const SkyImage& image, OutputFolder& folder) {
    fits_.finish();
    csv_.commit();
    plot::PolarFigureOptions figure;
    figure.unit = setup_.unit == "Jy" ? "Jy in each bin" : unit_label(setup_.unit);
    figure.outer = setup_.grid.radius;
    if (image.header.frequencies().defined()) figure.frequencies = plot::to_vector(image.header.frequencies());
    figure.nchan = static_cast<std::int64_t>(facts_.size());
    plot::write_figure(folder.staged("polar.png"), plot::polar_page(at::stack(maps_), figure));
  }

  const std::vector<ChannelFacts>& channels() const { return facts_; }

 private:
  static io::PolarAxes axes_of(const PolarGrid& grid, std::int64_t nchan) {
    const double width = grid.radius / static_cast<double>(grid.nr), step = 2 * units::pi / static_cast<double>(grid.nphi);
    return {nchan, grid.nr, grid.nphi, {width / 2, width}, {step / 2, step}};
  }

  static io::PolarFitsOptions header_of(const PolarSetup& setup, const SkyImage& image, const OptionSet& settings) {
    auto history = history_lines("mpol polar", settings);
    history.emplace_back(
        "PHI from the major axis at the position angle, growing to the East of it; RADIUS in the plane of the disc");
    add_reprojection(history, image);
    return io::PolarFitsOptions()
        .unit(setup.unit)
        .frequencies(image.header.frequencies())
        .observation(image.header.observation())
        .history(history);
  }

  void add_channel(const PolarBlock& made, std::int64_t i) {
    const auto channel = made.begin + i;
    const auto map = made.value[i];
    csv_.write(csv_rows(channel, plot::to_vector(map), plot::to_vector(made.scatter[i])));
    const auto bin = map.argmax().item<std::int64_t>();
    facts_.push_back({made.flux.defined() ? std::optional(made.flux[i].item<double>()) : std::nullopt,
                      map.flatten()[bin].item<double>(), middle_radius(setup_.grid, bin / setup_.grid.nphi),
                      middle_azimuth(setup_.grid, bin % setup_.grid.nphi)});
    if (std::find(shown_.begin(), shown_.end(), channel) != shown_.end()) maps_.push_back(map.clone());
  }

  std::string csv_rows(std::int64_t channel, const std::vector<double>& value, const std::vector<double>& scatter) const {
    std::string text;
    std::size_t bin = 0;
    for (std::int64_t i = 0; i < setup_.grid.nr; ++i) {
      const double radius = middle_radius(setup_.grid, i);
      for (std::int64_t j = 0; j < setup_.grid.nphi; ++j, ++bin)
        fmt::format_to(std::back_inserter(text), "{},{:.10g},{:.10g},{:.17g},{:.17g},{:.17g}\n", channel, radius,
                       middle_azimuth(setup_.grid, j), value[bin], scatter[bin], area_[bin]);
    }
    return text;
  }

  const PolarOptions& options_;
  const PolarSetup& setup_;
  std::vector<double> area_;         // of each bin
  std::vector<std::int64_t> shown_;  // channels in the figure
  io::PolarFitsWriter fits_;
  AtomicFile csv_;
  std::vector<ChannelFacts> facts_;
  std::vector<Tensor> maps_;  // of the channels in the figure
};

std::string summary_json(const PolarOptions& options, const PolarSetup& setup, const ChosenDevice& device,
                         const std::vector<ChannelFacts>& facts) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  for (const auto& channel : facts) {
    channels.push_back({{"flux_jy", nullptr},
                        {"peak", channel.peak},
                        {"peak_radius_arcsec", channel.radius},
                        {"peak_phi_deg", channel.azimuth}});
    if (channel.flux) channels.back()["flux_jy"] = *channel.flux;
  }
  nlohmann::ordered_json json = {
      {"image", options.image.image.string()}, {"mode", choice_name(options.mode, bin_value_choices)}, {"unit", setup.unit}};
  json.update(grid_summary(options.grid, setup.grid));
  json.update({{"area_arcsec2", setup.integrator.area().sum().item<double>()},
               {"device", device.names()},
               {"dtype", choice_name(options.computing.dtype, dtype_choices)},
               {"channels", channels}});
  return summary_text(json);
}

std::string words(const PolarSetup& setup, const ChannelFacts& first, const OutputFolder& folder) {
  const auto flux = first.flux ? fmt::format("flux   {:.4g} Jy\n", *first.flux) : std::string();
  return fmt::format("peak   {:.4g} {} at {:.4g}\", {:.4g} deg\n{}files  {}\n", first.peak, setup.unit, first.radius,
                     first.azimuth, flux, folder.path().string());
}

int make_polar(PolarOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.image);
  use_threads(options.image.threads);
  const auto device = choose_device(options.computing.device);
  OutputFolder folder(options.output, settings.verb());
  SkyCube cube(options.image.image, "IMAGE", parse_channels(options.channels));
  stop_if_requested();
  const auto setup = setup_of(options, cube);
  auto plan = polar_plan(cube, setup.integrator, options.computing.dtype);
  PolarFiles files(options, setup, cube, settings, folder);
  run_plan(plan, {options.memory_limit, device.all}, [&](const ChannelPlan::Block& block) {
    stop_if_requested();
    files.add(block);
  });
  files.finish(cube.image(), folder);
  return commit_with_summary(folder, summary_json(options, setup, device, files.channels()), options.output,
                             words(setup, files.channels()[0], folder));
}

}  // namespace

Verb add_polar(CLI::App& program) { return add_verb<PolarOptions>(program, polar_help, make_polar, {"polar.fits"}); }

}  // namespace mpol::cli
