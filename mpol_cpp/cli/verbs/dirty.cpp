#include <array>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/memory.h>
#include <mpol_cpp/cli/image/weight_check.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/cli/output/history.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/image_figure.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp dirty_help = {
    "dirty", "Make the dirty image and beam of visibilities",
    "Example:\n  mpol dirty vis.npz -o dirty --cell-size 0.03 --npix 180 --weighting briggs --robust 0.5"};

constexpr auto imaging_choices = std::to_array<NamedChoice<Imaging>>({{"exact", Imaging::exact}, {"cells", Imaging::cells}});
constexpr auto weighting_choices = std::to_array<NamedChoice<Weighting>>(
    {{"natural", Weighting::natural}, {"uniform", Weighting::uniform}, {"briggs", Weighting::briggs}});

struct DirtyOptions {
  OutputOptions output;
  DataOptions data;
  Imaging imaging = Imaging::exact;
  Weighting weighting = Weighting::briggs;
  double robust = 0.5;
  double taper = 0;  ///< FWHM, arcsec; 0: none
  ImageUnit unit = ImageUnit::jy_per_beam;
  ScatterCheck scatter_check = ScatterCheck::warn;
  bool split_channels = false;

  bool per_beam() const { return unit == ImageUnit::jy_per_beam; }
};

void declare(OptionSet& options, DirtyOptions& dirty) {
  declare(options, dirty.data);
  declare_conjugate(options, dirty.data);
  declare_mode(options, dirty.data);
  declare_center(options, dirty.data);
  options.choice("--imaging", dirty.imaging, imaging_choices,
                 "Images of the samples themselves, or of cell averages as in MPoL, which lose flux off centre", Record::result);
  options.choice("--weighting", dirty.weighting, weighting_choices, "Density weighting", Record::result);
  options.number("--robust", dirty.robust, Range::between(-2, 2), "R", "Briggs robustness", Record::result);
  options.number("--taper", dirty.taper, Range::not_negative(), "ARCSEC", "FWHM of a Gaussian taper on the sky; 0: none",
                 Record::result);
  options.choice("--unit", dirty.unit, image_unit_choices, "Unit of the image", Record::result);
  options.choice("--scatter-check", dirty.scatter_check, scatter_check_choices,
                 "Compare the scatter of the data with their weights", Record::manner);
  options.flag("--split-channels", dirty.split_channels, "Write dirty_0000.fits, … instead of cubes", Record::result);
  declare(options, dirty.output);
  options.only({"--robust"}, "with --weighting briggs", [&dirty] { return dirty.weighting == Weighting::briggs; });
  options.only({"--scatter-check"}, "without --taper", [&dirty] { return dirty.taper == 0; });
}

DirtyImagerOptions imager_options(const DirtyOptions& options) {
  auto imager = DirtyImagerOptions().weighting(options.weighting).robust(options.robust);
  imager.imaging(options.imaging).unit(options.unit);
  if (options.taper > 0) imager.taper(gaussian_taper(options.taper));
  return imager;
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
  const bool is_briggs = options.weighting == Weighting::briggs;
  nlohmann::ordered_json json = {{"imaging", choice_name(options.imaging, imaging_choices)},
                                 {"weighting", choice_name(options.weighting, weighting_choices)},
                                 {"robust", is_briggs ? nlohmann::ordered_json(options.robust) : nullptr},
                                 {"taper_arcsec", options.taper},
                                 {"unit", choice_name(options.unit, image_unit_choices)},
                                 {"center_arcsec", center_json(visibilities.observation().center)},
                                 {"n_visibilities", visibilities.nvis() * visibilities.nchan()},
                                 {"n_cells", imager.cells().numel()},
                                 {"channels", channels}};
  if (const auto stokes = visibilities.observation().stokes; stokes != Stokes::i) json["stokes"] = to_string(stokes);
  json["choices"] = choices_json(choices);
  return summary_text(json);
}

std::string words(const DirtyImager& imager, const DirtyOptions& options, const OutputFolder& folder) {
  const auto beam = imager.fitted_beam().front();
  const auto noise = imager.noise()[0].item<double>();
  std::string text = beam ? fmt::format("beam   {:.4g}\" x {:.4g}\", position angle {:.1f} deg\n", beam->major, beam->minor,
                                        beam->position_angle / units::degree)
                          : "beam   is no ellipse\n";
  text += fmt::format("noise  {:.3g} {} (from the weights)\n", noise, choice_name(options.unit, image_unit_choices));
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
  if (options.scatter_check == ScatterCheck::off || !imager.scatter()) return;
  const auto warning = weights_warning(*imager.scatter(), imager.coords(), visibilities);
  if (warning.empty()) return;
  if (options.scatter_check == ScatterCheck::error)
    throw DataError(warning + "; scale them with mpol weights, or use --scatter-check off");
  log_warning(warning);
}

int make_dirty(DirtyOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.data);
  auto chosen = choose_grid(options.data);
  const auto coords = chosen.coords;
  const auto check = [&coords](std::int64_t nchan) {
    check_memory(dirty_memory(coords.npix(), nchan), available_memory(), coords.npix(), nchan);
  };
  check(1);
  use_threads(options.data.threads);
  OutputFolder folder(options.output, settings.verb());
  const auto visibilities = chosen.take_visibilities(options.data);
  check_grid_holds(visibilities, options.data, coords);
  check_no_hermitian_pairs(visibilities);
  check(visibilities.nchan());
  stop_if_requested();
  const DirtyImager imager(coords, visibilities, imager_options(options));
  check_scatter(imager, visibilities, options);
  stage(folder, imager, visibilities, options, settings);
  const auto summary = summary_json(imager, visibilities, options, chosen.choices);
  return commit_with_summary(folder, summary, options.output, choice_words(chosen.choices) + words(imager, options, folder));
}

}  // namespace

Verb add_dirty(CLI::App& program) {
  return add_verb<DirtyOptions>(program, dirty_help, make_dirty, {"beam.fits", "beam_0000.fits"});
}

}  // namespace mpol::cli
