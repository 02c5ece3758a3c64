#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/disc_fit/geometry_fit.h>
#include <mpol_cpp/analysis/disc_fit/geometry_profile.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/cli/verbs/disc_data.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/geometry_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp geometry_help = {"geometry",
                                    "Inclination, position angle and centre of a disc from its visibilities, with errors",
                                    "Example:\n  mpol geometry vis.npz -o geometry"};

constexpr auto model_choices = std::to_array<NamedChoice<GeometryModel>>({{"free", GeometryModel::free},
                                                                          {"gaussian", GeometryModel::gaussian},
                                                                          {"ring", GeometryModel::ring},
                                                                          {"disc", GeometryModel::disc}});

struct GeometryVerbOptions {
  OutputOptions output;
  DataOptions data;
  GeometryModel model = GeometryModel::free;
  std::int64_t bins = 50;
};

void declare(OptionSet& options, GeometryVerbOptions& geometry) {
  declare_disc_data(options, geometry.data);
  options.choice("--model", geometry.model, model_choices,
                 "What the centred, deprojected visibilities are compared with: any real profile, or a model", Record::result);
  options.integer("--bins", geometry.bins, Range::between(1, 100000), "Bins of baseline length in geometry.csv and geometry.png",
                  Record::result);
  declare(options, geometry.output);
}

void set_measured(nlohmann::ordered_json& json, const std::string& name, const std::string& unit,
                  const std::optional<Measured>& measured) {
  json[name + unit] = measured ? nlohmann::ordered_json(measured->value) : nlohmann::ordered_json();
  json[name + "_error" + unit] = measured ? nlohmann::ordered_json(measured->error) : nlohmann::ordered_json();
}

nlohmann::ordered_json describe(const GeometryVerbOptions& options, const GeometryFit& fit) {
  nlohmann::ordered_json json = {{"data", options.data.data.string()},
                                 {"model", name_of(fit.model)},
                                 {"inclination_deg", fit.geometry.inclination / units::degree},
                                 {"inclination_error_deg", fit.errors.inclination / units::degree},
                                 {"position_angle_deg", fit.geometry.position_angle / units::degree},
                                 {"position_angle_error_deg", fit.errors.position_angle / units::degree},
                                 {"offset_east_arcsec", fit.geometry.offset_east},
                                 {"offset_east_error_arcsec", fit.errors.offset_east},
                                 {"offset_north_arcsec", fit.geometry.offset_north},
                                 {"offset_north_error_arcsec", fit.errors.offset_north}};
  set_measured(json, "flux", "_jy", fit.flux);
  set_measured(json, "size", "_arcsec", fit.size);
  set_measured(json, "width", "_arcsec", fit.width);
  json["correlation"] = {{"order", {"inclination", "position_angle", "offset_east", "offset_north"}},
                         {"matrix", fit.correlation}};
  json["inclination_found"] = fit.inclination_found;
  json["chi_squared"] = fit.chi_squared;
  json["reduced_chi_squared"] = fit.reduced_chi_squared();
  json["residual_structure"] = fit.structure;
  json["n_visibilities"] = fit.samples;
  json["n_parameters"] = fit.parameters;
  json["iterations"] = fit.iterations;
  json["converged"] = fit.converged;
  return json;
}

/// Two digits of the error, and the number to the same place.
std::string with_error(double value, double error) {
  if (!(error > 0) || !std::isfinite(error)) return fmt::format("{:.6g} ± {:.2g}", value, error);
  const int places = std::clamp(1 - static_cast<int>(std::floor(std::log10(error))), 0, 12);
  return fmt::format("{:.{}f} ± {:.{}f}", value, places, error, places);
}

std::string words(const GeometryVerbOptions& options, const GeometryFit& fit, const OutputFolder& folder) {
  const auto& geometry = fit.geometry;
  const double inclination = geometry.inclination / units::degree, angle = geometry.position_angle / units::degree;
  std::string text = fmt::format("model           {}\n", name_of(fit.model));
  text += fmt::format("inclination     {} degrees\n", with_error(inclination, fit.errors.inclination / units::degree));
  text += fit.inclination_found
              ? fmt::format("position angle  {} degrees\n", with_error(angle, fit.errors.position_angle / units::degree))
              : "position angle  not known: the disc may be seen face on\n";
  text += fmt::format("offset East     {}\"\n", with_error(geometry.offset_east, fit.errors.offset_east));
  text += fmt::format("offset North    {}\"\n", with_error(geometry.offset_north, fit.errors.offset_north));
  text += fmt::format("chi^2           {:.4g} for each degree of freedom\n", fit.reduced_chi_squared());
  text += fmt::format("files           {}\n", folder.path().string());
  text += fmt::format(
      "profile         mpol profile {} -o PROFILE --inclination {:.6g} --position-angle {:.6g} --offset-east {:.6g} "
      "--offset-north {:.6g}\n",
      options.data.data.string(), inclination, angle, geometry.offset_east, geometry.offset_north);
  return text;
}

int fit_and_write(GeometryVerbOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.data);
  use_threads(options.data.threads);
  OutputFolder folder(options.output, settings.verb());
  const auto visibilities = read_disc_data(options.data);
  stop_if_requested();
  const auto fit = fit_geometry(visibilities, GeometryFitOptions().model(options.model));
  stop_if_requested();
  const auto profile = geometry_profile(visibilities, fit, options.bins);
  write_file_atomically(folder.staged("geometry.csv"), visibility_table(profile.after, profile.model));
  plot::write_figure(folder.staged("geometry.png"), plot::geometry_page(profile));
  return commit_with_summary(folder, summary_text(describe(options, fit)), options.output, words(options, fit, folder));
}

}  // namespace

Verb add_geometry(CLI::App& program) {
  return add_verb<GeometryVerbOptions>(program, geometry_help, fit_and_write, {"geometry.csv"});
}

}  // namespace mpol::cli
