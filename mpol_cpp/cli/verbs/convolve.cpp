#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/measuring/channel_beams.h>
#include <mpol_cpp/cli/measuring/cube_files.h>
#include <mpol_cpp/cli/measuring/polar_plan.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/history.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/images/combined_beam.h>
#include <mpol_cpp/images/gauss_conv_image.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/fits_cube.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp convolve_help = {
    "convolve", "Convolve an image with a Gaussian beam, as CLEAN restores its model",
    "Example:\n  mpol convolve disc/image.fits -o restored --bmaj 0.1 --bmin 0.08 --bpa 30\n"
    "  mpol convolve disc/image.fits -o restored --beam-of disc/dirty.fits --residual disc/residual.fits"};

struct ConvolveOptions {
  OutputOptions output;
  ImageFileOptions image;
  std::optional<double> major, minor;  ///< FWHM, arcsec
  double position_angle = 0;           ///< degrees
  std::filesystem::path beam_of;       ///< a FITS file whose beams are taken
  std::filesystem::path residual;      ///< a residual image in Jy/beam to add
  ImageUnit unit = ImageUnit::jy_per_beam;
  double memory_limit = 1;  ///< GiB

  bool per_beam() const { return unit == ImageUnit::jy_per_beam; }
};

void declare(OptionSet& options, ConvolveOptions& convolve) {
  declare(options, convolve.image);
  options.number("--bmaj", convolve.major, Range::positive(), "ARCSEC",
                 "Major axis (FWHM) of what to convolve with; the image's own beam is added in the header", Record::result);
  options.number("--bmin", convolve.minor, Range::positive(), "ARCSEC", "Minor axis; default: a round beam", Record::result);
  options.number("--bpa", convolve.position_angle, Range::any(), "DEG", "Position angle of the major axis, North through East",
                 Record::result);
  options.path("--beam-of", convolve.beam_of, "Reach the beams of this FITS file instead, as of OUT/dirty.fits", Record::result);
  options.path("--residual", convolve.residual, "Add this image in Jy/beam, as OUT/residual.fits, as CLEAN does", Record::result);
  options.choice("--unit", convolve.unit, image_unit_choices, "Unit of the result", Record::result);
  declare_memory_limit(options, convolve.memory_limit);
  declare(options, convolve.output);
  options.only({"--bmin", "--bpa"}, "with --bmaj", [&convolve] { return convolve.major.has_value(); });
}

void settle(ConvolveOptions& options) {
  settle(options.image);
  const bool given = options.major.has_value(), taken = !options.beam_of.empty();
  if (given == taken) {
    throw UsageError(error_text("--bmaj and --beam-of", given ? "both" : "missing", "one of them says what the beam is",
                                "give --bmaj ARCSEC, or --beam-of FILE.fits"));
  }
  if (options.minor && *options.minor > options.major.value_or(0)) {
    throw UsageError(error_text("--bmin", fmt::format("{}", *options.minor), "must not be larger than --bmaj", "swap them"));
  }
  if (!options.residual.empty() && !options.per_beam()) {
    throw UsageError(
        error_text("--residual", options.residual.string(), "is in Jy/beam, and so must the result be", "use --unit Jy/beam"));
  }
}

/// What an image is convolved with, and the beam that it has then; one of each, or one for each channel.
struct Beams {
  std::vector<Beam> kernels, results;
};

std::string words(const Beam& beam) {
  return fmt::format("{:.4g}\" x {:.4g}\" at {:.1f} deg", beam.major, beam.minor, beam.position_angle / units::degree);
}

/// Calls combine(own, wanted) of each channel, or of all where both are the same for all.
template <typename Combine>
std::vector<Beam> combined(const std::vector<Beam>& own, const std::vector<Beam>& wanted, const Combine& combine) {
  std::vector<Beam> beams;
  for (std::size_t i = 0; i < std::max(own.size(), wanted.size()); ++i) {
    beams.push_back(combine(own[own.size() == 1 ? 0 : i], wanted[wanted.size() == 1 ? 0 : i]));
  }
  return beams;
}

/// --bmaj, --bmin and --bpa say what to convolve with, --beam-of what beam to reach.
Beams beams_for(const ConvolveOptions& options, const SkyCube& cube) {
  const auto own = cube.image().header.beams();
  if (options.major) {
    const std::vector<Beam> kernel{{.major = *options.major,
                                    .minor = options.minor.value_or(*options.major),
                                    .position_angle = options.position_angle * units::degree}};
    return {kernel, own.empty() ? kernel : combined(own, kernel, convolved_beam)};
  }
  const auto wanted = io::FitsCube(options.beam_of, io::FitsPixels::any).header().beams;
  if (wanted.empty()) {
    throw DataError(error_text("--beam-of", options.beam_of.string(), "names no beam", "give --bmaj, --bmin and --bpa"));
  }
  const auto channels = static_cast<std::size_t>(cube.nchan());
  if (wanted.size() != 1 && wanted.size() != channels) {
    throw DataError(error_text("--beam-of", options.beam_of.string(),
                               fmt::format("has beams for {} channels, IMAGE {} channels", wanted.size(), channels),
                               "give one beam, or one for each channel"));
  }
  if (own.empty()) return {wanted, wanted};
  const auto kernels = combined(own, wanted, [](const Beam& from, const Beam& to) {
    const auto kernel = beam_between(from, to);
    if (!kernel) {
      throw DataError(error_text("--beam-of", words(to),
                                 fmt::format("must be wider everywhere than IMAGE's own beam, {}", words(from)),
                                 "give a wider beam, or with --bmaj one to convolve with besides"));
    }
    return *kernel;
  });
  return {kernels, combined(own, wanted, [](const Beam&, const Beam& to) { return to; })};
}

/// A Gaussian that pixels do not sample has another width and area than it says.
void check_sampling(const std::vector<Beam>& kernels, const GridCoords& coords) {
  constexpr double least = 1, enough = 2;  // pixels: FWHMs are off by 20 % and by 3e-4
  const auto narrowest =
      std::min_element(kernels.begin(), kernels.end(), [](const Beam& a, const Beam& b) { return a.minor < b.minor; });
  const double pixels = narrowest->minor / coords.cell_size();
  if (pixels >= enough) return;
  const auto limit = fmt::format("is what to convolve with, {:.2g} of the pixels of {:.4g}\" wide", pixels, coords.cell_size());
  if (pixels < least) {
    throw DataError(error_text("beam", words(*narrowest), limit, "choose a wider beam, at least 2 pixels, or finer pixels"));
  }
  log_warning(error_text("beam", words(*narrowest), limit, "its width is not exact below 2 pixels"));
}

/// CLEAN's restored image has the residual in Jy per dirty beam, which should be the beam of the result.
void compare_beams(const ConvolveOptions& options, const SkyImage& residual, const std::vector<Beam>& results) {
  const auto own = residual.header.beams();
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto& result = results[std::min(i, results.size() - 1)];
    if (std::abs(beam_area(own[i]) / beam_area(result) - 1) < 0.01) continue;
    log_warning(error_text("--residual", options.residual.string(),
                           fmt::format("is in Jy per beam of {}, the result in Jy per beam of {}", words(own[i]), words(result)),
                           "its flux counts wrongly: take --beam-of the residual"));
    return;
  }
}

/// The residual that is added, if one is.
std::optional<SkyCube> residual_like(const ConvolveOptions& options, const SkyCube& cube, const std::vector<Beam>& results) {
  if (options.residual.empty()) return std::nullopt;
  SkyCube residual(options.residual, "--residual", {}, SkyUnit::as_written, SkyFrame::own);
  const auto shape = [](const SkyCube& of) {
    return std::vector{of.nchan(), of.image().coords.npix(), of.image().coords.npix()};
  };
  if (residual.image().unit != "Jy/beam" || shape(residual) != shape(cube)) {
    throw DataError(error_text(
        "--residual", options.residual.string(),
        fmt::format("is a cube of shape {} in {}; it must be {} in Jy/beam", shape(residual), residual.image().unit, shape(cube)),
        "give the residual of the same run"));
  }
  compare_beams(options, residual.image(), results);
  return residual;
}

/// Reads the image, and beside it (n, 2, npix, npix) the residual that is added where there is one.
ChannelPlan read_both(SkyCube& cube, std::optional<SkyCube>& residual) {
  if (!residual) return plan_of(cube);
  return ChannelPlan({cube.nchan(), cube.bytes_of_channel() + 2 * residual->bytes_of_channel(),
                      [&cube, &residual](std::int64_t begin, std::int64_t end) {
                        return at::stack({cube.read(begin, end), residual->read(begin, end)}, 1);
                      }});
}

/// The convolved image in the unit of the options, with the residual if there is one, and of each channel the flux before and
/// after (of Jy/beam: times the beam's area), and the peak.
ChannelPlan convolve_plan(const ConvolveOptions& options, SkyCube& cube, std::optional<SkyCube>& residual, const Beams& beams) {
  auto plan = read_both(cube, residual);
  const auto coords = cube.image().coords;
  const bool per_beam = options.per_beam();
  plan.then("convolve", bytes_of_convolution(coords),
            ChannelPlan::RangeOperation(
                [coords, per_beam, &beams](const std::vector<Tensor>& read, std::int64_t begin, std::int64_t end) {
                  const bool added = read[0].dim() == 4;
                  const auto sky = added ? read[0].select(1, 0) : read[0];
                  auto convolved = GaussConvImage(coords, beams_of(beams.kernels, begin, end))->forward(sky);
                  if (per_beam) {
                    std::vector<double> areas;
                    for (const auto& beam : beams_of(beams.results, begin, end)) areas.push_back(beam_area(beam));
                    convolved.mul_(at::tensor(areas, torch::kFloat64).view({-1, 1, 1}));
                  }
                  if (added) convolved.add_(read[0].select(1, 1));
                  return std::vector<Tensor>{convolved, flux(sky, coords), flux(convolved, coords), convolved.amax({1, 2})};
                }));
  return plan;
}

nlohmann::ordered_json describe(const ConvolveOptions& options, const Beam& beam, const ChannelPlan::Block& block,
                                std::int64_t i) {
  const double area = beam_area(beam);
  const auto number = [&](std::size_t of) { return block.results[of][i].item<double>(); };
  return {{"bmaj_arcsec", beam.major},
          {"bmin_arcsec", beam.minor},
          {"bpa_deg", beam.position_angle / units::degree},
          {"beam_area_arcsec2", area},
          {"flux_before_jy", number(1)},
          {"flux_after_jy", number(2) / (options.per_beam() ? area : 1.0)},
          {"peak", number(3)}};
}

io::FitsOptions header_of(const ConvolveOptions& options, const SkyImage& image, const Beams& beams, const OptionSet& settings) {
  auto header = image.header;
  header.beams(beams.results);
  header.unit(options.per_beam() ? io::FitsUnit::jy_per_beam : io::FitsUnit::jy_per_arcsec2);
  auto history = history_lines("mpol convolve", settings);
  history.push_back("convolved with " + words(beams.kernels.front()) + (beams.kernels.size() > 1 ? " in channel 0" : ""));
  add_reprojection(history, image);
  header.history(history);
  return header;
}

int make_convolved(ConvolveOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options);
  use_threads(options.image.threads);
  OutputFolder folder(options.output, settings.verb());
  SkyCube cube(options.image.image, "IMAGE", {}, SkyUnit::brightness, SkyFrame::own);
  const auto& image = cube.image();
  const auto beams = beams_for(options, cube);
  check_sampling(beams.kernels, image.coords);
  auto residual = residual_like(options, cube, beams.results);
  stop_if_requested();
  CubeFiles files(folder, "convolved", image.coords, cube.nchan(), header_of(options, image, beams, settings));
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  run_plan(convolve_plan(options, cube, residual, beams), {.memory_limit = options.memory_limit},
           [&](const ChannelPlan::Block& block) {
             stop_if_requested();
             files.add(block.begin, block.results[0]);
             for (auto c = block.begin; c < block.end; ++c)
               channels.push_back(describe(options, beams_of(beams.results, c, c + 1).front(), block, c - block.begin));
           });
  files.finish();
  const nlohmann::ordered_json json = {
      {"image", options.image.image.string()}, {"unit", choice_name(options.unit, image_unit_choices)}, {"channels", channels}};
  return commit_with_summary(folder, summary_text(json), options.output, fmt::format("files  {}\n", folder.path().string()));
}

}  // namespace

Verb add_convolve(CLI::App& program) {
  return add_verb<ConvolveOptions>(program, convolve_help, make_convolved, {"convolved.fits"});
}

}  // namespace mpol::cli
