#include <algorithm>
#include <array>
#include <fstream>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/cat.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/cli/measuring/channel_beams.h>
#include <mpol_cpp/cli/measuring/polar_plan.h>
#include <mpol_cpp/cli/measuring/profile_samples.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/options/set_options.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/run_images.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/cli/verbs/profile_visibilities.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/images/restore.h>
#include <mpol_cpp/io/archives/folder_archive.h>
#include <mpol_cpp/io/fits_cube.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/profile_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp profile_help = {
    "profile", "Average an image, or visibilities, of a disc in rings about its centre",
    "Example:\n  mpol profile disc -o profile --inclination 35 --position-angle 60 --ring-width 0.05\n"
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
  std::optional<RunImages> run;  ///< whose folder INPUT is
  double memory_limit = 1;       ///< GiB
  VisibilityProfileOptions visibilities;
  bool of_visibilities = false;  ///< what the input turned out to be
};

void declare(OptionSet& options, ProfileOptions& profile) {
  options.app()
      .add_option("INPUT", profile.image.positional_image,
                  "Image or cube in a FITS file, the folder of a run of mpol image, or visibilities (.npz, a folder of .npy, "
                  "UVFITS, or a measurement set)")
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
      "differ from the image's, and what the data still hold; default: those of the run, else from the scatter along rings",
      Record::result);
  declare_memory_limit(options, profile.memory_limit);
  declare(options, profile.visibilities);
  declare(options, profile.output);
  options.only({"--ring-width", "--radius", "--rings", "--samples", "--memory-limit"}, "of an image",
               [&profile] { return !profile.of_visibilities; });
  options.only({"--samples"}, "of a file: a run has its own", [&profile] { return !profile.run; });
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

/// What a profile is made of: the image of a file, or that of a run at the resolution of its beams.
struct ProfileSource {
  SkyCube cube;
  std::vector<std::int64_t> channels;  // of the file, in this order; empty: all
  std::vector<Beam> beams;             // of a run: what the image is restored to, one or one for each of the channels

  /// The unit of what is restored, of a run whose beams are known, else that of the file.
  std::string unit() const { return beams.empty() ? cube.image().unit : "Jy/beam"; }
  /// The largest beam, over which neighbouring pixels are alike; 0 without beams.
  double correlated_area() const {
    double area = 0;
    for (const auto& beam : beams.empty() ? cube.image().header.beams() : beams) area = std::max(area, beam_area(beam));
    return area;
  }
};

/// The beams of a run's channels.
std::vector<Beam> beams_of_run(const RunImages& run, const std::vector<std::int64_t>& channels) {
  const auto all = io::FitsCube(run.dirty).header().beams;
  if (all.empty()) {
    log_warning(
        error_text("INPUT", run.dirty.string(), "names no beam", "the profile has the resolution of pixels, finer than data"));
  }
  if (all.size() <= 1 || channels.empty()) return all;
  std::vector<Beam> beams;
  beams.reserve(channels.size());
  for (const auto channel : channels) beams.push_back(all.at(static_cast<std::size_t>(channel)));
  return beams;
}

ProfileSource source_of(const ProfileOptions& options) {
  const auto channels = parse_channels(options.visibilities.data.channels);
  ProfileSource source{SkyCube(options.image.image, "IMAGE", channels), channels, {}};
  if (options.run) source.beams = beams_of_run(*options.run, channels);
  return source;
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

/// Puts the samples' errors in the place of the scatter's, of --samples or where a run has kept them.
/// @return whether there are any
bool take_sampled_errors(const ProfileOptions& options, ProfileSource& source, const RadialImageOptions& how,
                         BrightnessProfile& profile) {
  const auto nchan = profile.mean.size(0);
  if (!options.run && options.samples.empty()) return false;
  if (!options.run && nchan != 1) {
    throw UsageError(error_text("--samples", options.samples.string(),
                                fmt::format("the image has {} channels, a file of samples those of one", nchan),
                                "name that with --channels"));
  }
  const auto& image = source.cube.image();
  const ProfileOfImage of_image{options.run ? "INPUT" : "--samples", image.coords, image.unit, options.geometry.geometry(), how};
  const auto nchan_of_run = options.run ? io::FitsCube(options.run->image).nchan() : 1;
  const auto file_of = [&](std::int64_t channel) {
    if (!options.run) return options.samples;
    const auto own = source.channels.empty() ? channel : source.channels[static_cast<std::size_t>(channel)];
    return options.run->samples(own, nchan_of_run);
  };
  if (options.run && !std::filesystem::exists(file_of(0))) return false;
  for (std::int64_t channel = 0; channel < nchan; ++channel) {
    stop_if_requested();
    auto own = profile;
    own.mean = profile.mean.narrow(0, channel, 1);
    profile.error[channel].copy_(error_by_samples(file_of(channel), of_image, source.cube.read(channel, channel + 1), own,
                                                  beams_of(source.beams, channel, channel + 1))[0]);
  }
  return true;
}

std::string summary_json(const ProfileOptions& options, const BrightnessProfile& profile, const ProfileSource& source,
                         bool by_samples) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  for (std::int64_t c = 0; c < profile.mean.size(0); ++c) {
    const auto ring = profile.mean[c].argmax().item<std::int64_t>();
    channels.push_back({{"peak", profile.mean[c][ring].item<double>()},
                        {"peak_error", profile.error[c][ring].item<double>()},
                        {"peak_radius_arcsec", profile.radius[ring].item<double>()}});
  }
  const nlohmann::ordered_json json = {{"image", options.image.image.string()},
                                       {"unit", source.unit()},
                                       {"inclination_deg", options.geometry.inclination},
                                       {"position_angle_deg", options.geometry.position_angle},
                                       {"offset_east_arcsec", options.geometry.offset_east},
                                       {"offset_north_arcsec", options.geometry.offset_north},
                                       {"beam_area_arcsec2", source.correlated_area()},
                                       {"error", by_samples ? "samples" : "scatter"},
                                       {"n_rings", profile.radius.size(0)},
                                       {"channels", channels}};
  return summary_text(json);
}

std::string words(const BrightnessProfile& profile, const ProfileSource& source, bool by_samples, const OutputFolder& folder) {
  const auto ring = profile.mean[0].argmax().item<std::int64_t>();
  return fmt::format("peak    {:.4g} ± {:.2g} {} at {:.4g}\"\nerrors  {}\nfiles   {}\n", profile.mean[0][ring].item<double>(),
                     profile.error[0][ring].item<double>(), source.unit(), profile.radius[ring].item<double>(),
                     by_samples ? "from fits of simulated data"
                                : "from the scatter along rings; better ones come from a run of mpol image --keep-samples",
                     folder.path().string());
}

/// The profile of a cube, block by block.
BrightnessProfile profile_of(const ProfileOptions& options, ProfileSource& source, const RadialImageOptions& how) {
  const auto coords = source.cube.image().coords;
  const auto geometry = options.geometry.geometry();
  auto plan = plan_of(source.cube);
  if (const auto& beams = source.beams; !beams.empty()) {
    plan.then("restore", bytes_of_convolution(coords),
              ChannelPlan::RangeOperation([&beams, coords](const std::vector<Tensor>& sky, std::int64_t begin, std::int64_t end) {
                return std::vector{restore(sky[0] / coords.cell_area(), coords, beams_of(beams, begin, end))};
              }));
  }
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
  auto source = source_of(options);
  stop_if_requested();
  const auto how = RadialImageOptions()
                       .edges(ring_edges(options, source.cube.image().coords))
                       .beam_area(source.correlated_area())
                       .pixels(options.rings);
  auto profile = profile_of(options, source, how);
  const bool by_samples = take_sampled_errors(options, source, how, profile);
  write_file_atomically(folder.staged("profile.csv"), csv(profile));
  plot::write_figure(folder.staged("profile.png"), plot::profile_page(profile, unit_label(source.unit()), "", options.radius));
  const auto summary = summary_json(options, profile, source, by_samples);
  return commit_with_summary(folder, summary, options.output, words(profile, source, by_samples, folder));
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
  options.run = run_images(options.image.image);
  if (options.run) options.image.image = options.run->image;
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
