#include <memory>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/output/history.h>
#include <mpol_cpp/cli/image/image_summary.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/image/weight_check.h>
#include <mpol_cpp/cli/program/messages.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>

namespace mpol::cli {
namespace {

struct DirtyOptions {
  OutputOptions output;
  DataOptions data;
  std::string imaging = "exact";
  std::string weighting = "briggs";
  double robust = 0.5;
  double taper = 0;  ///< FWHM, arcsec; 0: none
  std::string unit = "Jy/beam";
  std::string scatter_check = "warn";
  bool split_channels = false;

  bool per_beam() const { return unit == "Jy/beam"; }
};

void declare(OptionSet& options, DirtyOptions& dirty) {
  declare(options, dirty.data);
  declare_conjugate(options, dirty.data);
  declare_mode(options, dirty.data);
  declare_center(options, dirty.data);
  options.choice("--imaging", dirty.imaging, {"exact", "cells"},
                 "Images of the samples themselves, or of cell averages as in MPoL, which lose flux off centre", Record::result);
  options.choice("--weighting", dirty.weighting, {"natural", "uniform", "briggs"}, "Density weighting", Record::result);
  options.number("--robust", dirty.robust, Range::between(-2, 2), "R", "Briggs robustness", Record::result);
  options.number("--taper", dirty.taper, Range::not_negative(), "ARCSEC", "FWHM of a Gaussian taper on the sky; 0: none",
                 Record::result);
  options.choice("--unit", dirty.unit, {"Jy/beam", "Jy/arcsec2"}, "Unit of the image", Record::result);
  options.choice("--scatter-check", dirty.scatter_check, {"warn", "error", "off"},
                 "Compare the scatter of the data with their weights", Record::manner);
  options.flag("--split-channels", dirty.split_channels, "Write dirty_0000.fits, … instead of cubes", Record::result);
  declare(options, dirty.output);
  options.only({"--robust"}, "with --weighting briggs", [&dirty] { return dirty.weighting == "briggs"; });
  options.only({"--scatter-check"}, "without --taper", [&dirty] { return dirty.taper == 0; });
}

DirtyImagerOptions imager_options(const DirtyOptions& options) {
  const auto weighting = options.weighting == "natural"   ? Weighting::natural
                         : options.weighting == "uniform" ? Weighting::uniform
                                                          : Weighting::briggs;
  auto imager = DirtyImagerOptions().weighting(weighting).robust(options.robust);
  imager.imaging(options.imaging == "cells" ? Imaging::cells : Imaging::exact);
  if (options.taper > 0) imager.taper(gaussian_taper(options.taper));
  return imager.unit(options.per_beam() ? ImageUnit::jy_per_beam : ImageUnit::jy_per_arcsec2);
}

/// One entry per channel: beam area, fitted beam (null when it is no ellipse), peak sidelobe, noise.
std::string summary_json(const DirtyImager& imager, const Visibilities& visibilities, const DirtyOptions& options,
                         const std::vector<Choice>& choices) {
  const auto area = imager.beam_area(), sidelobe = imager.peak_sidelobe(), noise = imager.noise();
  const auto fitted = imager.fitted_beam();
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  for (std::int64_t c = 0; c < imager.nchan(); ++c) {
    nlohmann::ordered_json channel = {{"beam_area_arcsec2", area[c].item<double>()},
                                      {"bmaj_arcsec", nullptr},
                                      {"bmin_arcsec", nullptr},
                                      {"bpa_deg", nullptr},
                                      {"peak_sidelobe", sidelobe[c].item<double>()},
                                      {"noise", noise[c].item<double>()}};
    if (const auto& beam = fitted[static_cast<std::size_t>(c)]) {
      channel["bmaj_arcsec"] = beam->major;
      channel["bmin_arcsec"] = beam->minor;
      channel["bpa_deg"] = beam->position_angle / units::degree;
    }
    channels.push_back(channel);
  }
  nlohmann::ordered_json json = {{"imaging", options.imaging},
                                 {"weighting", options.weighting},
                                 {"robust", options.weighting == "briggs" ? nlohmann::ordered_json(options.robust) : nullptr},
                                 {"taper_arcsec", options.taper},
                                 {"unit", options.unit},
                                 {"center_arcsec", center_json(visibilities.observation().center)},
                                 {"n_visibilities", visibilities.nvis() * visibilities.nchan()},
                                 {"n_cells", imager.cells().numel()},
                                 {"channels", channels}};
  json["choices"] = choices_json(choices);
  return summary_text(json);
}

std::string words(const DirtyImager& imager, const DirtyOptions& options, const OutputFolder& folder) {
  const auto beam = imager.fitted_beam().front();
  const auto noise = imager.noise()[0].item<double>();
  std::string text = beam ? fmt::format("beam   {:.4g}\" x {:.4g}\", position angle {:.1f} deg\n", beam->major, beam->minor,
                                        beam->position_angle / units::degree)
                          : "beam   is no ellipse\n";
  text += fmt::format("noise  {:.3g} {} (from the weights)\n", noise, options.unit);
  return text + fmt::format("files  {}\n", folder.path().string());
}

void stage(OutputFolder& folder, const DirtyImager& imager, const Visibilities& visibilities, const DirtyOptions& options,
           const OptionSet& settings) {
  auto header = io::FitsOptions()
                    .frequencies(visibilities.frequencies())
                    .observation(visibilities.observation())
                    .unit(io::FitsUnit::jy_per_beam)
                    .history(history_lines("mpol dirty", settings));
  const auto write = options.split_channels
                         ? [](const std::filesystem::path& path, const Tensor& cube, const GridCoords& coords,
                              const io::FitsOptions& fits) { io::write_fits_split_channels(path, cube, coords, fits); }
                         : [](const std::filesystem::path& path, const Tensor& cube, const GridCoords& coords,
                              const io::FitsOptions& fits) { io::write_fits(path, cube, coords, fits); };
  const auto write_beam = [&](const Tensor& beam) {
    header.beams(fits_beams(imager));
    write(folder.staged("beam.fits"), beam, imager.coords(), header);
  };
  write_beam(imager.beam());  // before the image is there: it is measured on the way
  stop_if_requested();
  if (!options.per_beam()) header.unit(io::FitsUnit::jy_per_arcsec2);
  const auto image = imager.image();
  write(folder.staged("dirty.fits"), image, imager.coords(), header);
  stop_if_requested();
  plot::write_figure(folder.staged("dirty.png"), plot::image_page(image, imager.coords(), figure_options(header, image.size(0))));
}

void check_scatter(const DirtyImager& imager, const Visibilities& visibilities, const DirtyOptions& options) {
  if (options.scatter_check == "off" || !imager.scatter()) return;
  const auto warning = weights_warning(*imager.scatter(), imager.coords(), visibilities);
  if (warning.empty()) return;
  if (options.scatter_check == "error") throw DataError(warning + "; scale them with mpol weights, or use --scatter-check off");
  log_warning(warning);
}

int make_dirty(DirtyOptions& options, const OptionSet& settings) {
  settle(options.output);
  settle(options.data);
  settings.check_meaning();
  listen_to_library("dirty", options.output);
  auto chosen = choose_grid(options.data);
  const auto coords = chosen.coords;
  const auto check = [&coords](std::int64_t nchan) {
    check_memory(dirty_memory(coords.npix(), nchan), available_memory(), coords.npix(), nchan);
  };
  check(1);
  use_threads(options.data.threads);
  OutputFolder folder(options.output.out, options.output.overwrite ? Existing::replace : Existing::refuse, "dirty");
  const auto visibilities = chosen.take_visibilities(options.data);
  check_grid_holds(visibilities, options.data, coords);
  check_no_hermitian_pairs(visibilities);
  check(visibilities.nchan());
  stop_if_requested();
  const DirtyImager imager(coords, visibilities, imager_options(options));
  check_scatter(imager, visibilities, options);
  stage(folder, imager, visibilities, options, settings);
  const auto summary = summary_json(imager, visibilities, options, chosen.choices);
  commit_with_summary(folder, summary, options.output, choice_words(chosen.choices) + words(imager, options, folder));
  return exit_done;
}

}  // namespace

Verb add_dirty(CLI::App& program) {
  auto* app = program.add_subcommand("dirty", "Make the dirty image and beam of visibilities");
  app->footer("Example:\n  mpol dirty vis.npz -o dirty --cell-size 0.03 --npix 180 --weighting briggs --robust 0.5");
  const auto options = std::make_shared<DirtyOptions>();
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings] { return make_dirty(*options, *settings); }};
}

}  // namespace mpol::cli
