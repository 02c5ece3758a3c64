#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/data_options.h>
#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/cli/figure_options.h>
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
#include <mpol_cpp/images/gauss_conv_image.h>
#include <mpol_cpp/images/image_cube.h>
#include <mpol_cpp/images/restore.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/image_figure.h>
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
  options.number("--bmaj", convolve.major, Range::positive(), "ARCSEC", "Major axis of the beam (FWHM)", Record::result);
  options.number("--bmin", convolve.minor, Range::positive(), "ARCSEC", "Minor axis; default: a round beam", Record::result);
  options.number("--bpa", convolve.position_angle, Range::any(), "DEG", "Position angle of the major axis, North through East",
                 Record::result);
  options.path("--beam-of", convolve.beam_of, "Take the beams of this FITS file instead, as of OUT/dirty.fits", Record::result);
  options.path("--residual", convolve.residual, "Add this image in Jy/beam, as OUT/residual.fits, as CLEAN does", Record::result);
  options.choice("--unit", convolve.unit, {"Jy/beam", "Jy/arcsec2"}, "Unit of the result", Record::result);
  declare(options, convolve.output);
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

std::vector<GaussianBeam> wanted_beams(const ConvolveOptions& options) {
  if (options.major) {
    return {{.bmaj = *options.major, .bmin = options.minor.value_or(*options.major), .bpa = options.position_angle}};
  }
  std::vector<GaussianBeam> beams;
  for (const auto& beam : io::read_fits(options.beam_of).beams) {
    beams.push_back({.bmaj = beam.major, .bmin = beam.minor, .bpa = beam.position_angle / units::degree});
  }
  if (beams.empty()) {
    throw DataError(error_text("--beam-of", options.beam_of.string(), "names no beam", "give --bmaj, --bmin and --bpa"));
  }
  return beams;
}

std::vector<io::FitsBeam> header_beams(const std::vector<GaussianBeam>& beams) {
  std::vector<io::FitsBeam> headers;
  headers.reserve(beams.size());
  for (const auto& beam : beams) {
    headers.push_back({.major = beam.bmaj, .minor = beam.bmin, .position_angle = beam.bpa * units::degree});
  }
  return headers;
}

Tensor residual_like(const ConvolveOptions& options, const SkyImage& image) {
  if (options.residual.empty()) return {};
  const auto residual = read_sky_image(options.residual, "--residual", SkyUnit::as_written);
  if (residual.unit != "Jy/beam" || residual.cube.sizes() != image.cube.sizes()) {
    throw DataError(error_text("--residual", options.residual.string(),
                               fmt::format("is a cube of shape {} in {}; it must be {} in Jy/beam", residual.cube.sizes().vec(),
                                           residual.unit, image.cube.sizes().vec()),
                               "give the residual of the same run"));
  }
  return residual.cube;
}

std::string summary_json(const ConvolveOptions& options, const SkyImage& image, const std::vector<GaussianBeam>& beams,
                         const Tensor& convolved) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  const auto before = flux(image.cube, image.coords), after = flux(convolved, image.coords);
  for (std::int64_t c = 0; c < image.cube.size(0); ++c) {
    const auto& beam = beams[beams.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    const double area = beam_area(beam);
    channels.push_back({{"bmaj_arcsec", beam.bmaj},
                        {"bmin_arcsec", beam.bmin},
                        {"bpa_deg", beam.bpa},
                        {"beam_area_arcsec2", area},
                        {"flux_before_jy", before[c].item<double>()},
                        {"flux_after_jy", after[c].item<double>() / (options.per_beam() ? area : 1.0)},
                        {"peak", convolved[c].max().item<double>()}});
  }
  const nlohmann::ordered_json json = {{"image", options.image.image.string()}, {"unit", options.unit}, {"channels", channels}};
  return json.dump(2) + "\n";
}

int make_convolved(ConvolveOptions& options) {
  settle(options.output);
  settle(options.image);
  check(options);
  listen_to_library("convolve", options.output);
  use_threads(options.image.threads);
  OutputFolder folder(options.output.out, options.output.overwrite ? Existing::replace : Existing::refuse);
  const auto image = read_sky_image(options.image.image, "IMAGE");
  const auto beams = wanted_beams(options);
  const auto residual = residual_like(options, image);
  stop_if_requested();
  const auto convolved = options.per_beam() ? restore(image.cube, image.coords, beams, residual)
                                            : GaussConvImage(image.coords, beams)->forward(image.cube);
  auto header = image.header;
  header.beams(header_beams(beams));
  header.unit(options.per_beam() ? io::FitsUnit::jy_per_beam : io::FitsUnit::jy_per_arcsec2);
  header.history(
      {fmt::format("mpol convolve, beam {} x {} arcsec, position angle {} deg", beams[0].bmaj, beams[0].bmin, beams[0].bpa)});
  io::write_fits(folder.staged("convolved.fits"), convolved, image.coords, header);
  plot::write_image_figure(folder.staged("convolved.png"), convolved, image.coords, figure_options(header, convolved.size(0)));
  const auto summary = summary_json(options, image, beams, convolved);
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
  return {app, [options, settings] { return make_convolved(*options); }};
}

}  // namespace mpol::cli
