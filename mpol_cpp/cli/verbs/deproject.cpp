#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/deproject.h>
#include <mpol_cpp/cli/measuring/cube_files.h>
#include <mpol_cpp/cli/measuring/polar_plan.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/image_panel.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp deproject_help = {
    "deproject", "Show a disc face on",
    "Example:\n  mpol deproject disc/image.fits -o face_on --inclination 35 --position-angle 60"};

struct DeprojectOptions {
  OutputOptions output;
  ImageFileOptions image;
  GeometryOptions geometry;
  std::string channels;
  double memory_limit = 1;  ///< GiB
};

void declare(OptionSet& options, DeprojectOptions& deproject) {
  declare(options, deproject.image);
  declare(options, deproject.geometry);
  options.text("--channels", deproject.channels, "LIST", "Channels to use, from 0, as in 0,3-7; default: all", Record::result);
  declare_memory_limit(options, deproject.memory_limit);
  declare(options, deproject.output);
}

/// Flux of every channel, Jy.
struct Fluxes {
  std::vector<double> observed, face_on;
};

std::string summary_json(const DeprojectOptions& options, const Fluxes& fluxes) {
  const nlohmann::ordered_json json = {{"image", options.image.image.string()},
                                       {"inclination_deg", options.geometry.inclination},
                                       {"position_angle_deg", options.geometry.position_angle},
                                       {"offset_east_arcsec", options.geometry.offset_east},
                                       {"offset_north_arcsec", options.geometry.offset_north},
                                       {"unit", "Jy/arcsec2"},
                                       {"flux_observed_jy", fluxes.observed},
                                       {"flux_face_on_jy", fluxes.face_on}};
  return summary_text(json);
}

/// Without the beams: what was round is not any more.
io::FitsOptions header_of(const DeprojectOptions& options, const SkyImage& image) {
  auto header = image.header;
  header.beams({}).unit(io::FitsUnit::jy_per_arcsec2);
  std::vector<std::string> history = {
      fmt::format("mpol deproject, inclination {} deg, position angle {} deg, centre {} arcsec East, {} North",
                  options.geometry.inclination, options.geometry.position_angle, options.geometry.offset_east,
                  options.geometry.offset_north),
      "face on, the major axis of the sky to the North"};
  add_reprojection(history, image);
  header.history(history);
  return header;
}

ChannelPlan deproject_plan(const DeprojectOptions& options, SkyCube& cube) {
  constexpr double planes = 5;  // sum, addend and what they are made of
  auto plan = plan_of(cube);
  const auto coords = cube.image().coords;
  const auto pixels = static_cast<double>(coords.npix()) * static_cast<double>(coords.npix());
  plan.then("deproject", planes * sizeof(double) * pixels,
            [coords, geometry = options.geometry.geometry()](const std::vector<Tensor>& sky) {
              const auto face_on = deproject(sky[0], coords, geometry);
              return std::vector<Tensor>{face_on, flux(sky[0], coords), flux(face_on, coords)};
            });
  return plan;
}

void append(std::vector<double>& all, const Tensor& some) {
  const auto values = plot::to_vector(some);
  all.insert(all.end(), values.begin(), values.end());
}

int make_deprojected(DeprojectOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.image);
  use_threads(options.image.threads);
  OutputFolder folder(options.output, settings.verb());
  SkyCube cube(options.image.image, "IMAGE", parse_channels(options.channels), SkyUnit::brightness);
  stop_if_requested();
  CubeFiles files(folder, "deprojected", cube.image().coords, cube.nchan(), header_of(options, cube.image()));
  Fluxes fluxes;
  run_plan(deproject_plan(options, cube), {.memory_limit = options.memory_limit}, [&](const ChannelPlan::Block& block) {
    stop_if_requested();
    files.add(block.begin, block.results[0]);
    append(fluxes.observed, block.results[1]);
    append(fluxes.face_on, block.results[2]);
  });
  files.finish();
  const auto words = fmt::format("files  {}\n", folder.path().string());
  return commit_with_summary(folder, summary_json(options, fluxes), options.output, words);
}

}  // namespace

Verb add_deproject(CLI::App& program) {
  return add_verb<DeprojectOptions>(program, deproject_help, make_deprojected, {"deprojected.fits"});
}

}  // namespace mpol::cli
