#include <memory>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/data_options.h>
#include <mpol_cpp/cli/dirty_products.h>
#include <mpol_cpp/cli/ending.h>
#include <mpol_cpp/cli/figure_options.h>
#include <mpol_cpp/cli/image_summary.h>
#include <mpol_cpp/cli/memory.h>
#include <mpol_cpp/cli/messages.h>
#include <mpol_cpp/cli/output_folder.h>
#include <mpol_cpp/cli/stop_request.h>
#include <mpol_cpp/cli/threads.h>
#include <mpol_cpp/cli/verb.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/image_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>

namespace mpol::cli {
namespace {

struct DirtyOptions {
  OutputOptions output;
  DataOptions data;
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
  options.choice("--weighting", dirty.weighting, {"natural", "uniform", "briggs"}, "Density weighting", Record::result);
  options.number("--robust", dirty.robust, Range::between(-2, 2), "R", "Briggs robustness", Record::result);
  options.number("--taper", dirty.taper, Range::not_negative(), "ARCSEC", "FWHM of a Gaussian taper on the sky; 0: none",
                 Record::result);
  options.choice("--unit", dirty.unit, {"Jy/beam", "Jy/arcsec2"}, "Unit of the image", Record::result);
  options.choice("--scatter-check", dirty.scatter_check, {"warn", "error", "off"},
                 "Compare the scatter of the data with their weights; not with a taper", Record::manner);
  options.flag("--split-channels", dirty.split_channels, "Write dirty_0000.fits, … instead of cubes", Record::result);
  declare(options, dirty.output);
}

DirtyImagerOptions imager_options(const DirtyOptions& options) {
  const auto weighting = options.weighting == "natural"   ? Weighting::natural
                         : options.weighting == "uniform" ? Weighting::uniform
                                                          : Weighting::briggs;
  auto imager = DirtyImagerOptions().weighting(weighting).robust(options.robust);
  if (options.taper > 0) imager.taper(gaussian_taper(options.taper));
  return imager.unit(options.per_beam() ? ImageUnit::jy_per_beam : ImageUnit::jy_per_arcsec2);
}

/// One entry per channel: beam area, fitted beam (null when it is no ellipse), peak sidelobe, noise.
std::string summary_json(const DirtyImager& imager, const Visibilities& visibilities, const DirtyOptions& options) {
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
      channel["bmaj_arcsec"] = beam->bmaj;
      channel["bmin_arcsec"] = beam->bmin;
      channel["bpa_deg"] = beam->bpa;
    }
    channels.push_back(channel);
  }
  const nlohmann::ordered_json json = {{"weighting", options.weighting},
                                       {"robust", options.robust},
                                       {"taper_arcsec", options.taper},
                                       {"unit", options.unit},
                                       {"n_visibilities", visibilities.nvis() * visibilities.nchan()},
                                       {"n_cells", imager.cells().numel()},
                                       {"channels", channels}};
  return json.dump(2) + "\n";
}

std::string words(const DirtyImager& imager, const DirtyOptions& options, const OutputFolder& folder) {
  const auto beam = imager.fitted_beam().front();
  const auto noise = imager.noise()[0].item<double>();
  std::string text =
      beam ? fmt::format("beam   {:.4g}\" x {:.4g}\", position angle {:.1f} deg\n", beam->bmaj, beam->bmin, beam->bpa)
           : "beam   is no ellipse\n";
  text += fmt::format("noise  {:.3g} {} (from the weights)\n", noise, options.unit);
  return text + fmt::format("files  {}\n", folder.path().string());
}

void stage(OutputFolder& folder, const DirtyImager& imager, const Visibilities& visibilities, const DirtyOptions& options) {
  const auto image = imager.image();
  const auto beams = fits_beams(imager);
  const auto unit = options.per_beam() ? io::FitsUnit::jy_per_beam : io::FitsUnit::jy_per_arcsec2;
  auto header = io::FitsOptions()
                    .frequencies(visibilities.frequencies())
                    .observation(visibilities.observation())
                    .unit(unit)
                    .beams(beams)
                    .history({fmt::format("mpol dirty, weighting {}, robust {}, taper {} arcsec", options.weighting,
                                          options.robust, options.taper)});
  const auto write = options.split_channels
                         ? [](const std::filesystem::path& path, const Tensor& cube, const GridCoords& coords,
                              const io::FitsOptions& fits) { io::write_fits_split_channels(path, cube, coords, fits); }
                         : [](const std::filesystem::path& path, const Tensor& cube, const GridCoords& coords,
                              const io::FitsOptions& fits) { io::write_fits(path, cube, coords, fits); };
  write(folder.staged("dirty.fits"), image, imager.coords(), header);
  write(folder.staged("beam.fits"), imager.beam(), imager.coords(), header.unit(io::FitsUnit::jy_per_beam));
  stop_if_requested();
  plot::write_image_figure(folder.staged("dirty.png"), image, imager.coords(), figure_options(header.unit(unit), image.size(0)));
}

void check_scatter(const DirtyImager& imager, const DirtyOptions& options) {
  if (options.scatter_check == "off" || !imager.scatter()) return;
  const auto warning = scatter_warning(*imager.scatter());
  if (warning.empty()) return;
  if (options.scatter_check == "error") throw DataError(warning + "; scale them with mpol weights, or use --scatter-check off");
  log_warning(warning);
}

int make_dirty(DirtyOptions& options) {
  settle(options.output);
  settle(options.data);
  listen_to_library("dirty", options.output);
  const auto coords = requested_grid(options.data);
  const auto check = [&coords](std::int64_t nchan) {
    check_memory(dirty_memory(coords.npix(), nchan), available_memory(), coords.npix(), nchan);
  };
  check(1);
  use_threads(options.data.threads);
  OutputFolder folder(options.output.out, options.output.overwrite ? Existing::replace : Existing::refuse);
  const auto visibilities = read_visibilities(options.data);
  check_grid_holds(visibilities, options.data, coords);
  check_no_hermitian_pairs(visibilities);
  check(visibilities.nchan());
  stop_if_requested();
  const DirtyImager imager(coords, visibilities, imager_options(options));
  check_scatter(imager, options);
  stage(folder, imager, visibilities, options);
  const auto summary = summary_json(imager, visibilities, options);
  commit_with_summary(folder, summary, options.output, words(imager, options, folder));
  return exit_done;
}

}  // namespace

Verb add_dirty(CLI::App& program) {
  auto* app = program.add_subcommand("dirty", "Make the dirty image and beam of visibilities");
  app->footer("Example:\n  mpol dirty vis.npz -o dirty --cell-size 0.03 --npix 180 --weighting briggs --robust 0.5");
  const auto options = std::make_shared<DirtyOptions>();
  const auto settings = std::make_shared<OptionSet>(*app);
  declare(*settings, *options);
  return {app, [options, settings] { return make_dirty(*options); }};
}

}  // namespace mpol::cli
