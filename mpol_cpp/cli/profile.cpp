#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/cli/data_options.h>
#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/cli/image_file_options.h>
#include <mpol_cpp/cli/messages.h>
#include <mpol_cpp/cli/output_folder.h>
#include <mpol_cpp/cli/sky_grid.h>
#include <mpol_cpp/cli/stop_request.h>
#include <mpol_cpp/cli/threads.h>
#include <mpol_cpp/cli/verb.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/plot/figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

struct ProfileOptions {
  OutputOptions output;
  ImageFileOptions image;
  GeometryOptions geometry;
  std::optional<double> ring_width, radius;  ///< arcsec
};

void declare(OptionSet& options, ProfileOptions& profile) {
  declare(options, profile.image);
  declare(options, profile.geometry);
  options.number("--ring-width", profile.ring_width, Range::positive(), "ARCSEC", "Width of a ring; default: sqrt(2) pixels",
                 Record::result);
  options.number("--radius", profile.radius, Range::positive(), "ARCSEC", "Largest radius; default: that of the image",
                 Record::result);
  declare(options, profile.output);
}

std::vector<double> ring_edges(const ProfileOptions& options, const GridCoords& coords) {
  const double width = options.ring_width.value_or(std::numbers::sqrt2 * coords.cell_size());
  const double outermost = options.radius.value_or(0.5 * coords.cell_size() * static_cast<double>(coords.npix()));
  const auto rings = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(outermost / width)));
  if (rings > 1'000'000) {
    throw UsageError(
        error_text("--ring-width", fmt::format("{}", width), fmt::format("makes {} rings", rings), "widen the rings"));
  }
  std::vector<double> edges;
  for (std::int64_t i = 0; i <= rings; ++i) edges.push_back(width * static_cast<double>(i));
  return edges;
}

/// The largest beam of the file, over which neighbouring pixels are alike; 0 without beams.
double correlated_area(const SkyImage& image) {
  double area = 0;
  for (const auto& beam : image.header.beams()) {
    area = std::max(area, beam_area({.bmaj = beam.major, .bmin = beam.minor, .bpa = beam.position_angle / units::degree}));
  }
  return area;
}

std::string csv(const BrightnessProfile& profile) {
  std::string text = "channel,radius_arcsec,mean,scatter,error,pixels\n";
  for (std::int64_t c = 0; c < profile.mean.size(0); ++c) {
    for (std::int64_t i = 0; i < profile.radius.size(0); ++i) {
      text += fmt::format("{},{:.17g},{:.17g},{:.17g},{:.17g},{}\n", c, profile.radius[i].item<double>(),
                          profile.mean[c][i].item<double>(), profile.scatter[c][i].item<double>(),
                          profile.error[c][i].item<double>(), profile.pixels[i].item<std::int64_t>());
    }
  }
  return text;
}

std::vector<double> numbers(const Tensor& values) {
  const auto flat = values.contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

plot::Page figure(const BrightnessProfile& profile, const std::string& unit) {
  plot::CurvePanel panel{.title = "", .x_label = "radius (arcsec)", .y_label = unit, .curves = {}};
  const auto radius = numbers(profile.radius);
  constexpr std::int64_t most_curves = 8;
  const auto nchan = profile.mean.size(0);
  for (std::int64_t i = 0; i < std::min(nchan, most_curves); ++i) {
    const auto c = nchan <= most_curves ? i : i * (nchan - 1) / (most_curves - 1);
    const auto label = nchan == 1 ? "mean" : fmt::format("channel {}", c);
    panel.curves.push_back({.label = label, .style = plot::CurveStyle::line, .x = radius, .y = numbers(profile.mean[c])});
    if (nchan > 1) continue;
    panel.curves.push_back(
        {.label = "± error", .style = plot::CurveStyle::points, .x = radius, .y = numbers(profile.mean[c] + profile.error[c])});
    panel.curves.push_back(
        {.label = "", .style = plot::CurveStyle::points, .x = radius, .y = numbers(profile.mean[c] - profile.error[c])});
  }
  return {.title = "", .columns = 1, .panels = {panel}};
}

std::string summary_json(const ProfileOptions& options, const BrightnessProfile& profile, const SkyImage& image, double beam) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  for (std::int64_t c = 0; c < profile.mean.size(0); ++c) {
    const auto ring = profile.mean[c].argmax().item<std::int64_t>();
    channels.push_back({{"peak", profile.mean[c][ring].item<double>()},
                        {"peak_error", profile.error[c][ring].item<double>()},
                        {"peak_radius_arcsec", profile.radius[ring].item<double>()}});
  }
  const nlohmann::ordered_json json = {{"image", options.image.image.string()},
                                       {"unit", image.unit},
                                       {"inclination_deg", options.geometry.inclination},
                                       {"position_angle_deg", options.geometry.position_angle},
                                       {"offset_east_arcsec", options.geometry.offset_east},
                                       {"offset_north_arcsec", options.geometry.offset_north},
                                       {"beam_area_arcsec2", beam},
                                       {"n_rings", profile.radius.size(0)},
                                       {"channels", channels}};
  return json.dump(2) + "\n";
}

std::string words(const BrightnessProfile& profile, const SkyImage& image, const OutputFolder& folder) {
  const auto ring = profile.mean[0].argmax().item<std::int64_t>();
  return fmt::format("peak   {:.4g} ± {:.2g} {} at {:.4g}\"\nfiles  {}\n", profile.mean[0][ring].item<double>(),
                     profile.error[0][ring].item<double>(), image.unit, profile.radius[ring].item<double>(),
                     folder.path().string());
}

int make_profile(ProfileOptions& options) {
  settle(options.output);
  settle(options.image);
  listen_to_library("profile", options.output);
  use_threads(options.image.threads);
  OutputFolder folder(options.output.out, options.output.overwrite ? Existing::replace : Existing::refuse);
  const auto image = read_sky_image(options.image.image, "IMAGE", SkyUnit::as_written);
  stop_if_requested();
  const double beam = correlated_area(image);
  const auto profile = radial_i(image.cube, image.coords, options.geometry.geometry(),
                                RadialImageOptions().edges(ring_edges(options, image.coords)).beam_area(beam));
  write_file_atomically(folder.staged("profile.csv"), csv(profile));
  plot::render(folder.staged("profile.png"), figure(profile, image.unit));
  const auto summary = summary_json(options, profile, image, beam);
  commit_with_summary(folder, summary, options.output, words(profile, image, folder));
  return exit_done;
}

}  // namespace

Verb add_profile(CLI::App& program) {
  auto* app = program.add_subcommand("profile", "Average an image of a disc in rings about its centre");
  app->footer("Example:\n  mpol profile disc/image.fits -o profile --inclination 35 --position-angle 60 --ring-width 0.05");
  const auto options = std::make_shared<ProfileOptions>();
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings] { return make_profile(*options); }};
}

}  // namespace mpol::cli
