#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/cat.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/cli/measuring/polar_plan.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/options/set_options.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/cli/verbs/profile_visibilities.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/io/archives/folder_archive.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/profile_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp profile_help = {
    "profile", "Average an image, or visibilities, of a disc in rings about its centre",
    "Example:\n  mpol profile disc/image.fits -o profile --inclination 35 --position-angle 60 --ring-width 0.05\n"
    "  mpol profile vis.npz -o vis_profile --inclination 35 --position-angle 60 --bin-width 20"};

constexpr auto ring_choices =
    std::to_array<NamedChoice<RingPixels>>({{"centers", RingPixels::by_center}, {"exact", RingPixels::by_area}});

struct ProfileOptions {
  OutputOptions output;
  ImageFileOptions image;
  GeometryOptions geometry;
  std::optional<double> ring_width, radius;  ///< arcsec
  RingPixels rings = RingPixels::by_center;
  std::filesystem::path samples;
  double memory_limit = 1;  ///< GiB
  VisibilityProfileOptions visibilities;
  bool of_visibilities = false;  ///< what the input turned out to be
};

void declare(OptionSet& options, ProfileOptions& profile) {
  options.app()
      .add_option("INPUT", profile.image.positional_image,
                  "Image or cube in a FITS file, or visibilities (.npz, a folder of .npy, UVFITS, or a measurement set)")
      ->type_name("FILE");
  options.path("--image", profile.image.image, "The same as INPUT", Record::result);
  declare_threads(options, profile.image.threads);
  declare(options, profile.geometry);
  options.number("--ring-width", profile.ring_width, Range::positive(), "ARCSEC", "Width of a ring; default: sqrt(2) pixels",
                 Record::result);
  options.number("--radius", profile.radius, Range::positive(), "ARCSEC", "Largest radius; default: that of the image",
                 Record::result);
  options.choice("--rings", profile.rings, ring_choices,
                 "Which pixels are in a ring: those whose centers are, or of every pixel the part that is", Record::result);
  options.path(
      "--samples", profile.samples,
      "Fits of simulated data, from mpol image --keep-samples, of the image's one channel: errors are how their profiles "
      "differ from the image's, times the error_factor in their header; default: from the scatter along rings",
      Record::result);
  declare_memory_limit(options, profile.memory_limit);
  declare(options, profile.visibilities);
  declare(options, profile.output);
  options.only({"--ring-width", "--radius", "--rings", "--samples", "--memory-limit"}, "of an image",
               [&profile] { return !profile.of_visibilities; });
  options.only(visibility_option_names(), "of visibilities", [&profile] { return profile.of_visibilities; });
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
  for (const auto& beam : image.header.beams()) area = std::max(area, beam_area(beam));
  return area;
}

std::string csv(const BrightnessProfile& profile) {
  std::string text = "channel,radius_arcsec,mean,scatter,error,pixels\n";
  for (std::int64_t c = 0; c < profile.mean.size(0); ++c) {
    for (std::int64_t i = 0; i < profile.radius.size(0); ++i) {
      text += fmt::format("{},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g}\n", c, profile.radius[i].item<double>(),
                          profile.mean[c][i].item<double>(), profile.scatter[c][i].item<double>(),
                          profile.error[c][i].item<double>(), profile.pixels[i].item<double>());
    }
  }
  return text;
}

/// Puts the samples' error, times the error_factor that their file has, in the place of the scatter's.
void take_sampled_error(const ProfileOptions& options, const SkyImage& image, const RadialImageOptions& how,
                        BrightnessProfile& profile) {
  if (options.samples.empty()) return;
  const auto file = options.samples.string();
  if (profile.mean.size(0) != 1) {
    throw UsageError(error_text("--samples", file,
                                fmt::format("the image has {} channels, a file of samples those of one", profile.mean.size(0)),
                                "name that with --channels"));
  }
  const auto samples = read_sky_image(options.samples, "--samples", SkyUnit::as_written);
  if (samples.coords != image.coords || samples.unit != image.unit) {
    throw UsageError(error_text(
        "--samples", file,
        fmt::format("has {} pixels of {}\" in {}, the image {} of {}\" in {}", samples.coords.npix(), samples.coords.cell_size(),
                    samples.unit, image.coords.npix(), image.coords.cell_size(), image.unit),
        "take the samples of the same run"));
  }
  if (samples.cube.size(0) < 2)
    throw UsageError(error_text("--samples", file, "has one plane, which tells no spread", "take the file of --keep-samples"));
  const double factor = samples.header.error_factor().value_or(1);
  if (!(factor >= 1 && std::isfinite(factor)))
    throw UsageError(error_text("--samples", file, fmt::format("has ERRFACT {}: it must be finite, 1 or more", factor),
                                "take the file of --keep-samples"));
  profile.error = factor * sampled_error(profile, radial_i(samples.cube, image.coords, options.geometry.geometry(), how));
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
                                       {"error", options.samples.empty() ? "scatter" : "samples"},
                                       {"n_rings", profile.radius.size(0)},
                                       {"channels", channels}};
  return summary_text(json);
}

std::string words(const BrightnessProfile& profile, const SkyImage& image, const OutputFolder& folder) {
  const auto ring = profile.mean[0].argmax().item<std::int64_t>();
  return fmt::format("peak   {:.4g} ± {:.2g} {} at {:.4g}\"\nfiles  {}\n", profile.mean[0][ring].item<double>(),
                     profile.error[0][ring].item<double>(), image.unit, profile.radius[ring].item<double>(),
                     folder.path().string());
}

/// The profile of a cube, block by block.
BrightnessProfile profile_of(const ProfileOptions& options, SkyCube& cube, const RadialImageOptions& how) {
  const auto coords = cube.image().coords;
  const auto geometry = options.geometry.geometry();
  auto plan = plan_of(cube);
  const auto bytes = sizeof(double) * static_cast<double>(coords.npix()) * static_cast<double>(coords.npix());
  BrightnessProfile all;
  plan.then("profile", bytes, [&all, coords, geometry, &how](const std::vector<Tensor>& sky) {
    auto some = radial_i(sky[0], coords, geometry, how);
    all.radius = some.radius;
    all.pixels = some.pixels;
    return std::vector<Tensor>{some.mean, some.scatter, some.error};
  });
  std::vector<Tensor> mean, scatter, error;
  run_plan(plan, {.memory_limit = options.memory_limit}, [&](const ChannelPlan::Block& block) {
    stop_if_requested();
    mean.push_back(block.results[0]);
    scatter.push_back(block.results[1]);
    error.push_back(block.results[2]);
  });
  all.mean = at::cat(mean);
  all.scatter = at::cat(scatter);
  all.error = at::cat(error);
  return all;
}

int profile_image(const ProfileOptions& options, OutputFolder& folder) {
  SkyCube cube(options.image.image, "IMAGE", parse_channels(options.visibilities.data.channels));
  const auto& image = cube.image();
  stop_if_requested();
  const double beam = correlated_area(image);
  const auto how = RadialImageOptions().edges(ring_edges(options, image.coords)).beam_area(beam).pixels(options.rings);
  auto profile = profile_of(options, cube, how);
  take_sampled_error(options, image, how, profile);
  write_file_atomically(folder.staged("profile.csv"), csv(profile));
  plot::write_figure(folder.staged("profile.png"), plot::profile_page(profile, unit_label(image.unit), "", options.radius));
  const auto summary = summary_json(options, profile, image, beam);
  return commit_with_summary(folder, summary, options.output, words(profile, image, folder));
}

/// Visibilities come in zip archives, folders, and FITS files that hold groups.
bool holds_visibilities(const std::filesystem::path& path) {
  if (is_set_or_uvfits(path) || io::is_array_folder(path)) return true;
  std::ifstream file(path, std::ios::binary);
  return file.get() == 'P' && file.get() == 'K';
}

int make_profile(ProfileOptions& options, const OptionSet& settings) {
  settle(options.output);
  settle(options.image);
  options.of_visibilities = holds_visibilities(options.image.image);
  if (options.of_visibilities) options.visibilities.data.data = options.image.image;
  begin_verb(settings, options.output);
  use_threads(options.image.threads);
  if (options.of_visibilities) settle(options.visibilities, options.image.image);
  OutputFolder folder(options.output, settings.verb());
  return options.of_visibilities ? profile_visibilities(options.visibilities, options.geometry, options.output, folder)
                                 : profile_image(options, folder);
}

}  // namespace

Verb add_profile(CLI::App& program) { return add_verb<ProfileOptions>(program, profile_help, make_profile, {"profile.csv"}); }

}  // namespace mpol::cli
