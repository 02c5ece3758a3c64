#include <cmath>
#include <optional>
#include <utility>

#include <ATen/ops/stack.h>
#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/simulate_options.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/io/visibilities_npz.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp simulate_help = {
    "simulate", "Simulate an observation of a disc, of a scene or of a FITS image",
    "Example:\n  mpol simulate -o disc.npz --truth disc_truth.fits --frequency-ghz 230,232 --channel-width-mhz 62.5 "
    "--integration 600 --seed 1"};

/// A sky image with its grid: (nchan, npix, npix), Jy/arcsec^2.
struct Sky {
  Tensor cube;
  GridCoords coords;
  Stokes stokes = Stokes::i;
};

Sky read_sky_model(const std::filesystem::path& path) {
  const auto image = read_sky_image(path, "--sky");
  return {image.cube, image.coords, image.header.observation().stokes};
}

/// The observed sky's polarisation in what was observed of it.
Visibilities of_stokes(Visibilities visibilities, Stokes stokes) {
  auto observation = visibilities.observation();
  observation.stokes = stokes;
  visibilities.set_observation(std::move(observation));
  return visibilities;
}

/// The same samples with u, v in wavelengths, one set per channel.
Visibilities in_lambda(const Visibilities& visibilities, torch::Dtype dtype) {
  std::vector<Tensor> u, v;
  for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
    const auto [u_channel, v_channel] = visibilities.baselines().channel(channel);
    u.push_back(u_channel.to(dtype));
    v.push_back(v_channel.to(dtype));
  }
  Visibilities result(Baselines::in_lambda(at::stack(u), at::stack(v)), visibilities.data(), visibilities.weights());
  result.set_frequencies(visibilities.frequencies());
  result.set_observation(visibilities.observation());
  return result;
}

void refuse_existing(const std::filesystem::path& path, const SimulateSettings& settings) {
  if (!path.empty() && !settings.output.overwrite && std::filesystem::exists(path))
    throw FileError(error_text("output", path.string(), "is there already", "choose another name or add --overwrite"));
}

void check_files(const SimulateSettings& settings) {
  if (settings.output.out.empty())
    throw UsageError(error_text("--out", "missing", "the visibilities need a file", "add -o OUT.npz"));
  if (settings.npix % 2 != 0)
    throw UsageError(
        error_text("--npix", fmt::format("{}", settings.npix), "must be even", fmt::format("use --npix {}", settings.npix + 1)));
  for (const auto& path : {settings.output.out, settings.truth}) {
    refuse_existing(path, settings);
    if (!path.empty()) check_can_write(path);
  }
}

void write_truth(AtomicFile& file, const SimulateSettings& settings, const Sky& sky, const Visibilities& visibilities) {
  io::write_fits(file, sky.cube.expand({visibilities.nchan(), -1, -1}), sky.coords,
                 io::FitsOptions()
                     .frequencies(visibilities.frequencies())
                     .observation(visibilities.observation())
                     .history({fmt::format("the sky that mpol simulate observed, seed {}", settings.seed)}));
}

/// The noise of a visibility, Jy, by the mean weight.
double noise_of(const Visibilities& visibilities) {
  return 1 / std::sqrt(visibilities.weights().mean(torch::kFloat64).item<double>());
}

std::string words(const SimulateSettings& settings, const Visibilities& visibilities, const ArrayConfiguration& array) {
  const auto& baselines = visibilities.baselines();
  return fmt::format(
      "{} channels of {} visibilities from {} antennas; max |u| {:.4g}, max |v| {:.4g} lambda; noise {:.3g} Jy "
      "each\n{}\n",
      visibilities.nchan(), visibilities.nvis(), array.antennas(), baselines.max_abs_u(), baselines.max_abs_v(),
      noise_of(visibilities), settings.output.out.string());
}

/// Values that the library finds out of range were options of this command line.
template <typename Action>
auto from_options(const Action& action) {
  try {
    return action();
  } catch (const ValueError& error) {
    throw UsageError(error.what());
  }
}

std::string summary_json(const SimulateSettings& settings, const Visibilities& visibilities, const ArrayConfiguration& array) {
  nlohmann::ordered_json json = {{"file", settings.output.out.string()},
                                 {"truth", nullptr},
                                 {"n_channels", visibilities.nchan()},
                                 {"n_visibilities", visibilities.nvis()},
                                 {"n_antennas", array.antennas()},
                                 {"max_abs_u", visibilities.baselines().max_abs_u()},
                                 {"max_abs_v", visibilities.baselines().max_abs_v()},
                                 {"noise_jy", noise_of(visibilities)}};
  if (!settings.truth.empty()) json["truth"] = settings.truth.string();
  return summary_text(json, settings.seed);
}

int simulate(const SimulateSettings& settings, const OptionSet& given) {
  check_files(settings);
  begin_verb(given, settings.output);
  use_threads(settings.threads);
  const auto array = from_options([&] { return array_of(settings); });
  auto options = from_options([&] { return observation_of(settings); });
  if (settings.primary_beam) options.primary_beam(PrimaryBeam::of_antennas(array.diameter, array.name));
  const auto disc = from_options([&] { return disc_of(settings); });
  std::optional<Sky> sky;
  if (!settings.sky.empty()) sky = read_sky_model(settings.sky);
  else if (settings.scene) sky = Sky{scene_of(settings, options.frequencies()), GridCoords(settings.cell_size, settings.npix)};
  const auto observed = from_options([&] {
    return sky ? of_stokes(simulate_observation(array, sky->cube, sky->coords, options), sky->stokes)
               : simulate_observation(array, disc, options);
  });
  const auto visibilities = settings.uv_unit == io::UvUnit::metres ? observed : in_lambda(observed, options.dtype());
  stop_if_requested();
  std::optional<AtomicFile> truth;
  if (!settings.truth.empty()) {
    truth.emplace(settings.truth);
    if (!sky) {
      const GridCoords coords(settings.cell_size, settings.npix);
      sky = Sky{render(disc, coords, options.frequencies()), coords};
    }
    write_truth(*truth, settings, *sky, visibilities);
  }
  io::write_npz(settings.output.out, visibilities);
  if (truth) truth->commit();  // not without the visibilities
  return end_verb(settings.output, summary_json(settings, visibilities, array), words(settings, visibilities, array));
}

}  // namespace

Verb add_simulate(CLI::App& program) { return add_verb<SimulateSettings>(program, simulate_help, simulate); }

}  // namespace mpol::cli
