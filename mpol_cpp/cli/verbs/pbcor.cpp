#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/measuring/cube_files.h>
#include <mpol_cpp/cli/measuring/polar_plan.h>
#include <mpol_cpp/cli/options/data_options.h>
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
#include <mpol_cpp/images/brightness.h>
#include <mpol_cpp/images/primary_beam.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/fits_cube.h>
#include <mpol_cpp/models/image_cube.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp pbcor_help = {
    "pbcor", "Take the antennas' primary beam out of an image, as CASA's impbcor does",
    "Example:\n  mpol pbcor disc/image.fits -o corrected   # divided by the beam of the header's telescope\n"
    "  mpol pbcor sky.fits -o seen --mode multiply --antenna-diameter 12"};

enum class PbcorMode { divide, multiply };

constexpr std::array<NamedChoice<PbcorMode>, 2> mode_choices = {
    {{"divide", PbcorMode::divide}, {"multiply", PbcorMode::multiply}}};

struct PbcorOptions {
  OutputOptions output;
  ImageFileOptions image;
  PbcorMode mode = PbcorMode::divide;
  std::optional<double> diameter;   ///< metres
  std::optional<double> fwhm;       ///< arcsec
  std::optional<double> frequency;  ///< GHz
  SkyOffset pointing;
  double limit = 0.2;
  std::string channels;
  double memory_limit = 1;  ///< GiB
};

void declare(OptionSet& options, PbcorOptions& pbcor) {
  declare(options, pbcor.image);
  options.choice("--mode", pbcor.mode, mode_choices,
                 "divide: the sky itself; multiply: an image of the sky as the antennas see it, as mpol predict takes it",
                 Record::result);
  options.number("--antenna-diameter", pbcor.diameter, Range::positive(), "METRES",
                 "The beam of such antennas, a Gaussian of 1.13 lambda/D (ALMA's 7 and 12: its own); default: of the header's "
                 "TELESCOP",
                 Record::result);
  options.number("--fwhm", pbcor.fwhm, Range::positive(), "ARCSEC",
                 "A Gaussian beam of this width at half power, in cubes at the mean of the channels' frequencies",
                 Record::result);
  options.number("--frequency-ghz", pbcor.frequency, Range::positive(), "GHZ", "Of an image whose header has none",
                 Record::result);
  options.number("--offset-east", pbcor.pointing.east, Range::any(), "ARCSEC",
                 "Where the antennas pointed, from the phase centre", Record::result);
  options.number("--offset-north", pbcor.pointing.north, Range::any(), "ARCSEC",
                 "Where the antennas pointed, from the phase centre", Record::result);
  options.number("--limit", pbcor.limit, Range::between(0.01, 0.99), "SHARE",
                 "Pixels where the beam is below are blank (NaN) when it is divided by, as little is known of them",
                 Record::result);
  options.text("--channels", pbcor.channels, "LIST", "Channels to use, from 0, as in 0,3-7; default: all", Record::result);
  declare_memory_limit(options, pbcor.memory_limit);
  declare(options, pbcor.output);
  options.only({"--fwhm"}, "without --antenna-diameter", [&pbcor] { return !pbcor.diameter; });
}

/// The frequency of each channel, Hz. @throws DataError where neither header nor options have one
std::vector<double> frequencies_of(const PbcorOptions& options, const SkyCube& cube) {
  constexpr double hz_of_ghz = 1e9;
  const auto& known = cube.image().header.frequencies();
  std::vector<double> frequencies(static_cast<std::size_t>(cube.nchan()));
  if (known.defined() && options.frequency) {
    throw UsageError(error_text("--frequency-ghz", fmt::format("{}", *options.frequency),
                                fmt::format("the header of IMAGE has {:.6g} GHz", known[0].item<double>() / hz_of_ghz),
                                "leave it out"));
  }
  if (!known.defined() && !options.frequency && !options.fwhm) {
    throw DataError(error_text("IMAGE", options.image.image.string(), "has no frequency, with which a beam's width goes",
                               "give --frequency-ghz, or the width itself with --fwhm"));
  }
  for (std::size_t c = 0; c < frequencies.size(); ++c) {
    frequencies[c] =
        known.defined() ? known[static_cast<std::int64_t>(c)].item<double>() : options.frequency.value_or(1) * hz_of_ghz;
  }
  return frequencies;
}

PrimaryBeam beam_of(const PbcorOptions& options, const SkyCube& cube, const std::vector<double>& frequencies) {
  const auto& telescope = cube.image().header.observation().telescope;
  if (options.fwhm) {
    double sum = 0;
    for (const double frequency : frequencies) sum += frequency;
    return PrimaryBeam::gaussian(*options.fwhm, sum / static_cast<double>(frequencies.size()));
  }
  if (options.diameter) return PrimaryBeam::of_antennas(*options.diameter, telescope);
  if (auto beam = PrimaryBeam::of_telescope(telescope)) return *std::move(beam);
  throw DataError(error_text("IMAGE", options.image.image.string(),
                             telescope.empty() ? "names no telescope (TELESCOP)"
                                               : fmt::format("is of the telescope {}, whose antennas are not known", telescope),
                             "give --antenna-diameter METRES or --fwhm ARCSEC"));
}

/// The files and numbers of a run.
struct Pbcor {
  SkyCube cube;
  std::vector<double> frequencies;
  bool knows_frequencies;  ///< else they stand for any, of a beam whose width was given
  PrimaryBeam beam;
  io::FitsUnit unit;  ///< of image and result

  bool per_beam() const { return unit == io::FitsUnit::jy_per_beam; }
};

Pbcor read(const PbcorOptions& options) {
  // Jy/beam and Jy/pixel stay, other brightness becomes Jy/arcsec2.
  const auto channels = parse_channels(options.channels);
  SkyCube cube(options.image.image, "IMAGE", channels, SkyUnit::as_written, SkyFrame::own);
  const auto written = cube.image().unit;
  if (written != "Jy/beam") cube = SkyCube(options.image.image, "IMAGE", channels, SkyUnit::brightness, SkyFrame::own);
  const bool corrected = cube.image().is_divided_by_beam;
  if (corrected && options.mode == PbcorMode::divide) {
    throw DataError(error_text("IMAGE", options.image.image.string(), "is divided by the primary beam already, by mpol pbcor",
                               "give the image as it was, or --mode multiply to have it back"));
  }
  auto frequencies = frequencies_of(options, cube);
  auto beam = beam_of(options, cube, frequencies);
  const auto unit = written == "Jy/beam"    ? io::FitsUnit::jy_per_beam
                    : written == "Jy/pixel" ? io::FitsUnit::jy_per_pixel
                                            : io::FitsUnit::jy_per_arcsec2;
  const bool knows_frequencies = cube.image().header.frequencies().defined() || options.frequency;
  return {std::move(cube), std::move(frequencies), knows_frequencies, std::move(beam), unit};
}

/// What the plan makes of each channel: the result, the beam, and the flux (of Jy/beam: times the beam's area) before and after.
ChannelPlan pbcor_plan(const PbcorOptions& options, Pbcor& pbcor) {
  constexpr double planes = 6;
  auto plan = plan_of(pbcor.cube);
  const auto coords = pbcor.cube.image().coords;
  const auto& center = pbcor.cube.image().center();
  const SkyOffset pointing{options.pointing.east - center.east, options.pointing.north - center.north};
  const auto pixels = static_cast<double>(coords.npix()) * static_cast<double>(coords.npix());
  plan.then("primary beam", planes * sizeof(double) * pixels,
            ChannelPlan::RangeOperation([=, &pbcor, mode = options.mode, limit = options.limit](
                                            const std::vector<Tensor>& sky, std::int64_t begin, std::int64_t end) {
              auto beams = at::empty_like(sky[0]);
              for (auto c = begin; c < end; ++c)
                beams[c - begin].copy_(pbcor.beam.power(coords, pointing, pbcor.frequencies[static_cast<std::size_t>(c)]));
              if (mode == PbcorMode::multiply) {
                const auto seen = sky[0] * beams;
                return std::vector<Tensor>{seen, beams, flux(sky[0], coords), flux(seen, coords)};
              }
              const auto known = beams >= limit;
              const auto divided = at::where(known, sky[0] / beams, 0.0);
              const auto blanked = divided.masked_fill(known.logical_not(), std::numeric_limits<double>::quiet_NaN());
              return std::vector<Tensor>{blanked, beams, flux(sky[0], coords), flux(divided, coords)};
            }));
  return plan;
}

nlohmann::ordered_json describe(const Pbcor& pbcor, const ChannelPlan::Block& block, std::int64_t channel) {
  const auto& beams = pbcor.cube.image().header.beams();
  const auto i = static_cast<std::size_t>(channel);
  const double area = pbcor.per_beam() && !beams.empty() ? beam_area(beams[beams.size() == 1 ? 0 : i]) : 1;
  const auto row = channel - block.begin;
  const nlohmann::ordered_json frequency = pbcor.frequencies[i];
  return {{"frequency_hz", pbcor.knows_frequencies ? frequency : nullptr},
          {"fwhm_arcsec", pbcor.beam.fwhm(pbcor.frequencies[i])},
          {"flux_before_jy", block.results[2][row].item<double>() / area},
          {"flux_after_jy", block.results[3][row].item<double>() / area},
          {"blank_share", block.results[0][row].isnan().to(torch::kFloat64).mean().item<double>()}};
}

io::FitsOptions header_of(const PbcorOptions& options, const Pbcor& pbcor, const OptionSet& settings) {
  const auto& image = pbcor.cube.image();
  auto header = image.header;
  header.unit(pbcor.unit);
  auto history = history_lines("mpol pbcor", settings);
  history.push_back(fmt::format("{}: {}, {:.4g} arcsec wide at half power{}",
                                options.mode == PbcorMode::divide ? divided_by_beam : "multiplied by the primary beam",
                                pbcor.beam.words(), pbcor.beam.fwhm(pbcor.frequencies[0]),
                                pbcor.frequencies.size() > 1 ? " in channel 0" : ""));
  add_reprojection(history, image);
  header.history(history);
  return header;
}

std::string words_of(const nlohmann::ordered_json& channels, const Pbcor& pbcor, const std::filesystem::path& folder) {
  double before = 0, after = 0;
  for (const auto& channel : channels) {
    before += channel["flux_before_jy"].get<double>();
    after += channel["flux_after_jy"].get<double>();
  }
  const auto n = static_cast<double>(channels.size());
  return fmt::format("beam   {:.4g}\" at half power, {}\nflux   {:.4g} Jy, before {:.4g} Jy{}\nfiles  {}\n",
                     channels.front()["fwhm_arcsec"].get<double>(), pbcor.beam.words(), after / n, before / n,
                     channels.size() > 1 ? " (means of channels)" : "", folder.string());
}

int make_pbcor(PbcorOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.image);
  use_threads(options.image.threads);
  OutputFolder folder(options.output, settings.verb());
  auto pbcor = read(options);
  stop_if_requested();
  const auto& image = pbcor.cube.image();
  CubeFiles files(folder, options.mode == PbcorMode::divide ? "pbcor" : "apparent", image.coords, pbcor.cube.nchan(),
                  header_of(options, pbcor, settings));
  auto beam_header = image.header;
  beam_header.unit(io::FitsUnit::none).beams({}).history({"mpol pbcor: power of the primary beam, " + pbcor.beam.words()});
  io::FitsCubeWriter beams(folder.staged("primary_beam.fits"), image.coords, pbcor.cube.nchan(), beam_header);
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  run_plan(pbcor_plan(options, pbcor), {.memory_limit = options.memory_limit}, [&](const ChannelPlan::Block& block) {
    stop_if_requested();
    files.add(block.begin, block.results[0]);
    beams.add(block.results[1]);
    for (auto c = block.begin; c < block.end; ++c) channels.push_back(describe(pbcor, block, c));
  });
  files.finish();
  beams.finish();
  const nlohmann::ordered_json json = {{"image", options.image.image.string()},
                                       {"mode", choice_name(options.mode, mode_choices)},
                                       {"beam", pbcor.beam.words()},
                                       {"limit", options.limit},
                                       {"channels", channels}};
  return commit_with_summary(folder, summary_text(json), options.output, words_of(channels, pbcor, folder.path()));
}

}  // namespace

Verb add_pbcor(CLI::App& program) { return add_verb<PbcorOptions>(program, pbcor_help, make_pbcor, {"primary_beam.fits"}); }

}  // namespace mpol::cli
