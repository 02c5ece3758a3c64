#include <memory>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/deproject.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/options/image_file_options.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

struct DeprojectOptions {
  OutputOptions output;
  ImageFileOptions image;
  GeometryOptions geometry;
};

std::vector<double> fluxes(const Tensor& sky, const GridCoords& coords) {
  const auto values = flux(sky, coords).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

std::string summary_json(const DeprojectOptions& options, const SkyImage& image, const Tensor& face_on) {
  const nlohmann::ordered_json json = {{"image", options.image.image.string()},
                                       {"inclination_deg", options.geometry.inclination},
                                       {"position_angle_deg", options.geometry.position_angle},
                                       {"offset_east_arcsec", options.geometry.offset_east},
                                       {"offset_north_arcsec", options.geometry.offset_north},
                                       {"unit", "Jy/arcsec2"},
                                       {"flux_observed_jy", fluxes(image.cube, image.coords)},
                                       {"flux_face_on_jy", fluxes(face_on, image.coords)}};
  return summary_text(json);
}

int make_deprojected(DeprojectOptions& options, const OptionSet& settings) {
  settle(options.output);
  settle(options.image);
  settings.check_meaning();
  listen_to_library("deproject", options.output);
  use_threads(options.image.threads);
  OutputFolder folder(options.output.out, options.output.overwrite ? Existing::replace : Existing::refuse, "deproject");
  const auto image = read_sky_image(options.image.image, "IMAGE");
  stop_if_requested();
  const auto face_on = deproject(image.cube, image.coords, options.geometry.geometry());
  auto header = image.header;  // without the beams: what was round is not any more
  header.beams({}).unit(io::FitsUnit::jy_per_arcsec2);
  std::vector<std::string> history = {
      fmt::format("mpol deproject, inclination {} deg, position angle {} deg, centre {} arcsec East, {} North",
                  options.geometry.inclination, options.geometry.position_angle, options.geometry.offset_east,
                  options.geometry.offset_north),
      "face on, the major axis of the sky to the North"};
  add_reprojection(history, image);
  header.history(history);
  io::write_fits(folder.staged("deprojected.fits"), face_on, image.coords, header);
  plot::write_figure(folder.staged("deprojected.png"),
                     plot::image_page(face_on, image.coords, figure_options(header, face_on.size(0))));
  const auto summary = summary_json(options, image, face_on);
  commit_with_summary(folder, summary, options.output, fmt::format("files  {}\n", folder.path().string()));
  return exit_done;
}

}  // namespace

Verb add_deproject(CLI::App& program) {
  auto* app = program.add_subcommand("deproject", "Show a disc face on");
  app->footer("Example:\n  mpol deproject disc/image.fits -o face_on --inclination 35 --position-angle 60");
  const auto options = std::make_shared<DeprojectOptions>();
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, options->image);
  declare(*settings, options->geometry);
  declare(*settings, options->output);
  return {app, [options, settings] { return make_deprojected(*options, *settings); }};
}

}  // namespace mpol::cli
