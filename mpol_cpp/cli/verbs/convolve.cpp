#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/output/history.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/images/combined_beam.h>
#include <mpol_cpp/images/gauss_conv_image.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/io/any_fits.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

struct ConvolveOptions {
  OutputOptions output;
  ImageFileOptions image;
  std::optional<double> major, minor;  ///< FWHM, arcsec
  double position_angle = 0;           ///< degrees
  std::filesystem::path beam_of;       ///< a FITS file whose beams are taken
  std::filesystem::path residual;      ///< a residual image in Jy/beam to add
  std::string unit = "Jy/beam";

  bool per_beam() const { return unit == "Jy/beam"; }
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
  options.choice("--unit", convolve.unit, {"Jy/beam", "Jy/arcsec2"}, "Unit of the result", Record::result);
  declare(options, convolve.output);
  options.only({"--bmin", "--bpa"}, "with --bmaj", [&convolve] { return convolve.major.has_value(); });
}

void check(const ConvolveOptions& options) {
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
Beams beams_for(const ConvolveOptions& options, const SkyImage& image) {
  const auto own = image.header.beams();
  if (options.major) {
    const std::vector<Beam> kernel{{.major = *options.major,
                                    .minor = options.minor.value_or(*options.major),
                                    .position_angle = options.position_angle * units::degree}};
    return {kernel, own.empty() ? kernel : combined(own, kernel, convolved_beam)};
  }
  const auto wanted = io::read_any_fits(options.beam_of).image.beams;
  if (wanted.empty()) {
    throw DataError(error_text("--beam-of", options.beam_of.string(), "names no beam", "give --bmaj, --bmin and --bpa"));
  }
  const auto channels = static_cast<std::size_t>(image.cube.size(0));
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

Tensor residual_like(const ConvolveOptions& options, const SkyImage& image, const std::vector<Beam>& results) {
  if (options.residual.empty()) return {};
  const auto residual = read_sky_image(options.residual, "--residual", SkyUnit::as_written, SkyFrame::own);
  if (residual.unit != "Jy/beam" || residual.cube.sizes() != image.cube.sizes()) {
    throw DataError(error_text("--residual", options.residual.string(),
                               fmt::format("is a cube of shape {} in {}; it must be {} in Jy/beam", residual.cube.sizes().vec(),
                                           residual.unit, image.cube.sizes().vec()),
                               "give the residual of the same run"));
  }
  compare_beams(options, residual, results);
  return residual.cube;
}

/// The convolved image in the unit of the options, with the residual if there is one.
Tensor convolved_image(const ConvolveOptions& options, const SkyImage& image, const Beams& beams, const Tensor& residual) {
  auto convolved = GaussConvImage(image.coords, beams.kernels)->forward(image.cube);
  if (options.per_beam()) {
    std::vector<double> areas;
    for (const auto& beam : beams.results) areas.push_back(beam_area(beam));
    convolved.mul_(at::tensor(areas, torch::kFloat64).view({-1, 1, 1}));
  }
  return residual.defined() ? convolved + residual : convolved;
}

std::string summary_json(const ConvolveOptions& options, const SkyImage& image, const std::vector<Beam>& beams,
                         const Tensor& convolved) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  const auto before = flux(image.cube, image.coords), after = flux(convolved, image.coords);
  for (std::int64_t c = 0; c < image.cube.size(0); ++c) {
    const auto& beam = beams[beams.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    const double area = beam_area(beam);
    channels.push_back({{"bmaj_arcsec", beam.major},
                        {"bmin_arcsec", beam.minor},
                        {"bpa_deg", beam.position_angle / units::degree},
                        {"beam_area_arcsec2", area},
                        {"flux_before_jy", before[c].item<double>()},
                        {"flux_after_jy", after[c].item<double>() / (options.per_beam() ? area : 1.0)},
                        {"peak", convolved[c].max().item<double>()}});
  }
  const nlohmann::ordered_json json = {{"image", options.image.image.string()}, {"unit", options.unit}, {"channels", channels}};
  return summary_text(json);
}

int make_convolved(ConvolveOptions& options, const OptionSet& settings) {
  settle(options.output);
  settle(options.image);
  check(options);
  settings.check_meaning();
  listen_to_library("convolve", options.output);
  use_threads(options.image.threads);
  OutputFolder folder(options.output.out, options.output.overwrite ? Existing::replace : Existing::refuse, "convolve");
  const auto image = read_sky_image(options.image.image, "IMAGE", SkyUnit::brightness, SkyFrame::own);
  const auto beams = beams_for(options, image);
  check_sampling(beams.kernels, image.coords);
  const auto residual = residual_like(options, image, beams.results);
  stop_if_requested();
  const auto convolved = convolved_image(options, image, beams, residual);
  auto header = image.header;
  header.beams(beams.results);
  header.unit(options.per_beam() ? io::FitsUnit::jy_per_beam : io::FitsUnit::jy_per_arcsec2);
  auto history = history_lines("mpol convolve", settings);
  history.push_back("convolved with " + words(beams.kernels.front()) + (beams.kernels.size() > 1 ? " in channel 0" : ""));
  add_reprojection(history, image);
  header.history(history);
  io::write_fits(folder.staged("convolved.fits"), convolved, image.coords, header);
  plot::write_figure(folder.staged("convolved.png"),
                     plot::image_page(convolved, image.coords, figure_options(header, convolved.size(0))));
  const auto summary = summary_json(options, image, beams.results, convolved);
  commit_with_summary(folder, summary, options.output, fmt::format("files  {}\n", folder.path().string()));
  return exit_done;
}

}  // namespace

Verb add_convolve(CLI::App& program) {
  auto* app = program.add_subcommand("convolve", "Convolve an image with a Gaussian beam, as CLEAN restores its model");
  app->footer(
      "Example:\n  mpol convolve disc/image.fits -o restored --bmaj 0.1 --bmin 0.08 --bpa 30\n"
      "  mpol convolve disc/image.fits -o restored --beam-of disc/dirty.fits --residual disc/residual.fits");
  const auto options = std::make_shared<ConvolveOptions>();
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings] { return make_convolved(*options, *settings); }};
}

}  // namespace mpol::cli
