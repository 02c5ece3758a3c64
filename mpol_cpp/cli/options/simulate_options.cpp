#include <mpol_cpp/cli/options/simulate_options.h>

#include <array>
#include <sstream>

#include <ATen/ops/stack.h>

#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol::cli {
namespace {

constexpr double degree = units::degree;

/// The units in which visibilities are written.
constexpr auto written_unit_choices =
    std::to_array<NamedChoice<io::UvUnit>>({{"lambda", io::UvUnit::lambda}, {"m", io::UvUnit::metres}});

/// The disc, and the scenes of the library.
const std::vector<NamedChoice<std::optional<Scene>>>& scene_choices() {
  static const auto names = scene_names();
  static const auto choices = [] {
    std::vector<NamedChoice<std::optional<Scene>>> all = {{"disc", std::nullopt}};
    for (const auto& name : names) all.push_back({name.c_str(), scene_by_name(name)});
    return all;
  }();
  return choices;
}

void declare_files(OptionSet& options, SimulateSettings& s) {
  declare(options, s.output);
  options.describe("--out", "The visibilities: a new .npz file");
  options.describe("--overwrite", "Replace the files when they are there");
  options.describe("--json", "Print what was simulated as JSON on stdout instead of words");
  options.path("--truth", s.truth, "Also write the true sky, a FITS image on the grid of --cell-size and --npix", Record::none);
  options.number("--cell-size", s.cell_size, Range::positive(), "ARCSEC", "Pixel width of the true sky", Record::none);
  options.integer("--npix", s.npix, Range::between(2, 16384), "Pixels of the true sky along each axis, even", Record::none);
  options.choice("--uv-unit", s.uv_unit, written_unit_choices, "Unit of uu and vv in the file", Record::none);
  options.choice("--dtype", s.dtype, dtype_choices, "Precision of the file", Record::none);
  options.integer("--threads", s.threads, Range::between(1, 4096), "Threads; default: the CPUs this process may use",
                  Record::none);
}

void declare_array(OptionSet& options, SimulateSettings& s) {
  options.path("--array", s.array,
               "Antenna positions: lines of `x y z [diameter [name]]` in metres, East North Up, or "
               "geocentric after a line `# coordsys=XYZ`; default: an array like ALMA's",
               Record::none);
  options.integer("--antennas", s.antennas, Range::between(2, 10000), "Of the built-in array", Record::none);
  options.number("--longest-baseline", s.longest_baseline, Range::positive(), "METRES", "Of the built-in array", Record::none);
  options.number("--latitude", s.latitude, Range::between(-90, 90), "DEG", "Of the array; default: its own, else ALMA's",
                 Record::none);
  options.number("--dish-diameter", s.diameter, Range::positive(), "METRES", "Default: the array's own, else 12", Record::none);
}

void declare_observation(OptionSet& options, SimulateSettings& s) {
  options.number("--declination", s.declination, Range::between(-90, 90), "DEG", "Of the phase centre", Record::none);
  options.number("--right-ascension", s.right_ascension, Range::between(0, 360), "DEG", "Of the phase centre", Record::none);
  options.number("--hour-angle-start", s.hour_angle_start, Range::between(-180, 180), "DEG", "Begin of the observation",
                 Record::none);
  options.number("--hour-angle-end", s.hour_angle_end, Range::between(-180, 180), "DEG", "Its end", Record::none);
  options.number("--integration", s.integration, Range::positive(), "SECONDS", "Between samples", Record::none);
  options.number("--minimum-elevation", s.minimum_elevation, Range::between(0, 89), "DEG", "No samples below", Record::none);
  options.text("--frequency-ghz", s.frequencies, "GHZ[,GHZ...]", "Frequency of each channel", Record::none);
  options.number("--channel-width-mhz", s.channel_width_mhz, Range::positive(), "MHZ", "Bandwidth of a channel", Record::none);
  options.number("--system-temperature", s.system_temperature, Range::positive(), "K", "Towards the zenith", Record::none);
  options.number("--opacity", s.opacity, Range::between(0, 10), "TAU", "Towards the zenith: low sources are noisier",
                 Record::none);
  options.number("--antenna-efficiency", s.antenna_efficiency, Range::between(1e-6, 1), "SHARE", "Of the dish's area",
                 Record::none);
  options.number("--correlator-efficiency", s.correlator_efficiency, Range::between(1e-6, 1), "SHARE", "Of the signal",
                 Record::none);
  options.integer("--polarizations", s.polarizations, Range::between(1, 2), "Averaged hands, 1 or 2", Record::none);
  options.flag("--primary-beam", s.primary_beam,
               "The antennas' primary beam dims what is off the phase centre, but not in the file of --truth", Record::none);
  options.flag("--no-noise", s.no_noise, "Only the weights, not the data, know of noise", Record::none);
  options.integer("--seed", s.seed, Range::not_negative(), "Of the noise: the same seed gives the same file", Record::none);
}

void declare_sky(OptionSet& options, SimulateSettings& s) {
  options.path("--sky", s.sky, "Observe this FITS image instead of the disc", Record::none);
  options.choice("--scene", s.scene, scene_choices(),
                 "Observe this kind of sky, drawn at random on the grid of --cell-size and --npix", Record::none);
  options.integer("--scene-seed", s.scene_seed, Range::not_negative(), "Of the scene: the same seed gives the same sky",
                  Record::none);
  options.number("--flux", s.flux, Range::positive(), "JY", "Of the disc or scene at 230 GHz", Record::none);
  options.number("--spectral-index", s.spectral_index, Range::between(-100, 100), "ALPHA", "Flux grows as frequency^ALPHA",
                 Record::none);
  options.number("--inclination", s.inclination, Range::between(0, 85), "DEG", "0: face on", Record::none);
  options.number("--position-angle", s.position_angle, Range::any(), "DEG", "Of the major axis, North through East",
                 Record::none);
  options.number("--offset-east", s.offset_east, Range::any(), "ARCSEC", "Of the disc from the phase centre", Record::none);
  options.number("--offset-north", s.offset_north, Range::any(), "ARCSEC", "Of the disc from the phase centre", Record::none);
  options.text("--rings", s.rings, "RADIUS:FWHM:BRIGHTNESS[,...]", "Rings of the disc, arcsec; `none`: none", Record::none);
  options.flag("--no-crescent", s.no_crescent, "Rings only", Record::none);
  options.number("--crescent-radius", s.crescent_radius, Range::positive(), "ARCSEC", "Distance from the centre", Record::none);
  options.number("--crescent-width", s.crescent_width, Range::positive(), "ARCSEC", "Radial FWHM", Record::none);
  options.number("--crescent-position-angle", s.crescent_position_angle, Range::any(), "DEG", "Of its middle, North through East",
                 Record::none);
  options.number("--crescent-azimuthal-width", s.crescent_azimuthal_width, Range::between(5, 360), "DEG", "FWHM", Record::none);
  options.number("--crescent-contrast", s.crescent_contrast, Range::positive(), "RATIO", "Peak over that of the brightest ring",
                 Record::none);
}

void state_meanings(OptionSet& options, const SimulateSettings& s) {
  options.only({"--antennas", "--longest-baseline"}, "without --array", [&s] { return s.array.empty(); });
  options.only({"--cell-size", "--npix"}, "for a scene or the --truth of a disc",
               [&s] { return s.sky.empty() && (s.scene || !s.truth.empty()); });
  options.only({"--scene"}, "without --sky", [&s] { return s.sky.empty(); });
  options.only({"--scene-seed"}, "for a scene other than disc", [&s] { return s.sky.empty() && s.scene; });
  options.only({"--seed"}, "without --no-noise", [&s] { return !s.no_noise; });
  options.only({"--flux", "--spectral-index"}, "without --sky", [&s] { return s.sky.empty(); });
  const auto has_disc = [&s] { return s.sky.empty() && !s.scene; };
  options.only({"--inclination", "--position-angle", "--offset-east", "--offset-north", "--rings", "--no-crescent"}, "for a disc",
               has_disc);
  options.only(
      {"--crescent-radius", "--crescent-width", "--crescent-position-angle", "--crescent-azimuthal-width", "--crescent-contrast"},
      "for a disc without --no-crescent", [&s, has_disc] { return has_disc() && !s.no_crescent; });
}

DiscRing ring_of(const std::string& item) {
  std::istringstream parts(item);
  std::vector<double> numbers;
  for (std::string part; std::getline(parts, part, ':');)
    numbers.push_back(parse_number("rings", part, numbers.empty() ? Range::not_negative() : Range::positive()));
  if (numbers.size() != 3 || item.back() == ':')
    throw UsageError(error_text("--rings", item, "a ring is RADIUS:FWHM:BRIGHTNESS", "as in --rings 0.36:0.15:1,0.68:0.17:0.6"));
  return {numbers[0], numbers[1], numbers[2]};
}

std::vector<DiscRing> rings_of(const std::string& list) {
  std::vector<DiscRing> rings;
  if (list == "none") return rings;
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) rings.push_back(ring_of(item.empty() ? ":" : item));
  return rings;
}

}  // namespace

void declare(OptionSet& options, SimulateSettings& settings) {
  declare_files(options, settings);
  declare_array(options, settings);
  declare_observation(options, settings);
  declare_sky(options, settings);
  state_meanings(options, settings);
}

ArrayConfiguration array_of(const SimulateSettings& settings) {
  auto array = settings.array.empty() ? alma_like_array(settings.longest_baseline, settings.antennas)
                                      : read_array_configuration(settings.array);
  if (settings.latitude) array.latitude = *settings.latitude * degree;
  if (settings.diameter) array.diameter = *settings.diameter;
  return array;
}

SimulationOptions observation_of(const SimulateSettings& settings) {
  std::vector<double> frequencies;
  std::istringstream items(settings.frequencies);
  for (std::string item; std::getline(items, item, ',');)
    frequencies.push_back(1e9 * parse_number("frequency-ghz", item, Range::positive()));
  if (!settings.frequencies.empty() && settings.frequencies.back() == ',') frequencies.clear();
  if (frequencies.empty())
    throw UsageError(error_text("--frequency-ghz", settings.frequencies, "one frequency per channel", "as in 230,232"));
  SimulationOptions options;
  options.tracks(TrackOptions()
                     .declination(settings.declination * degree)
                     .hour_angle_start(settings.hour_angle_start * degree)
                     .hour_angle_end(settings.hour_angle_end * degree)
                     .integration_time(settings.integration)
                     .minimum_elevation(settings.minimum_elevation * degree));
  options.receiver(ReceiverOptions()
                       .system_temperature(settings.system_temperature)
                       .zenith_opacity(settings.opacity)
                       .antenna_efficiency(settings.antenna_efficiency)
                       .correlator_efficiency(settings.correlator_efficiency)
                       .channel_width(settings.channel_width_mhz * 1e6)
                       .polarizations(settings.polarizations));
  options.frequencies(frequencies).seed(static_cast<std::uint64_t>(settings.seed)).dtype(settings.dtype);
  if (settings.right_ascension) options.right_ascension(*settings.right_ascension * degree);
  if (settings.no_noise) options.noise(SimulatedNoise::none);
  return options;
}

RingedDisc disc_of(const SimulateSettings& settings) {
  RingedDisc disc;
  disc.flux = settings.flux;
  disc.spectral_index = settings.spectral_index;
  disc.inclination = settings.inclination * degree;
  disc.position_angle = settings.position_angle * degree;
  disc.offset_east = settings.offset_east;
  disc.offset_north = settings.offset_north;
  disc.rings = rings_of(settings.rings);
  disc.crescent = Crescent{settings.crescent_radius, settings.crescent_width, settings.crescent_position_angle * degree,
                           settings.crescent_azimuthal_width * degree, settings.crescent_contrast};
  if (settings.no_crescent) disc.crescent.reset();
  disc.check();
  return disc;
}

Tensor scene_of(const SimulateSettings& settings, const std::vector<double>& frequencies) {
  const GridCoords coords(settings.cell_size, settings.npix);
  const auto unit = render(settings.scene.value(), coords, 1, static_cast<std::uint64_t>(settings.scene_seed));
  RingedDisc spectrum;
  spectrum.flux = settings.flux;
  spectrum.spectral_index = settings.spectral_index;
  std::vector<Tensor> channels;
  channels.reserve(frequencies.size());
  for (const double frequency : frequencies) channels.push_back(unit * spectrum.flux_at(frequency));
  return at::stack(channels);
}

}  // namespace mpol::cli
