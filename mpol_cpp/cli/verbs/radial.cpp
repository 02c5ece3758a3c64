#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/disc_fit/geometry_fit.h>
#include <mpol_cpp/analysis/disc_fit/geometry_profile.h>
#include <mpol_cpp/analysis/radial_fit/radial_profile_fit.h>
#include <mpol_cpp/cli/options/image_file_options.h>
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
#include <mpol_cpp/plot/figures/profile_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp radial_help = {"radial",
                                  "Brightness of a disc against its radius from its visibilities, without an image, with errors",
                                  "Example:\n  mpol radial vis.npz -o radial --inclination 35 --position-angle 85"};

struct RadialOptions {
  OutputOptions output;
  DataOptions data;
  std::optional<double> inclination, position_angle, offset_east, offset_north;  ///< degrees and arcsec
  std::optional<double> radius;                                                  ///< arcsec
  std::optional<std::int64_t> points;
  PowerPrior prior;
  std::int64_t bins = 100;

  bool has_geometry() const { return inclination || position_angle || offset_east || offset_north; }
  DiscGeometry geometry() const {
    return {.inclination = inclination.value_or(0) * units::degree,
            .position_angle = position_angle.value_or(0) * units::degree,
            .offset_east = offset_east.value_or(0),
            .offset_north = offset_north.value_or(0)};
  }
};

void declare(OptionSet& options, RadialOptions& radial) {
  declare_disc_data(options, radial.data);
  declare_geometry(options, radial.inclination, radial.position_angle, radial.offset_east, radial.offset_north,
                   "Inclination of the disc, 0: face on; default: with the other three fitted as mpol geometry does, where one "
                   "is given 0");
  options.number("--radius", radial.radius, Range::positive(), "ARCSEC",
                 "Radius beyond which there is no brightness; default: half the field in which a dirty image has flux",
                 Record::result);
  options.integer("--points", radial.points, Range::between(3, 5000),
                  "Radii of the profile; default: what the longest baseline needs, 50 to 1000", Record::result);
  options.number("--alpha", radial.prior.alpha, Range::between(1, 1e3), "NUMBER",
                 "Prior of the power spectrum: larger wants less power where the noise is stronger", Record::result);
  options.number("--smoothness", radial.prior.smoothness, Range{.low = 0.0}, "NUMBER",
                 "Prior of the power spectrum: larger wants a smoother one", Record::result);
  options.integer("--bins", radial.bins, Range::between(1, 100000), "Bins of baseline length in visibilities.csv and radial.png",
                  Record::result);
  declare(options, radial.output);
}

RadialProfileOptions profile_options(const RadialOptions& radial) {
  return RadialProfileOptions().radius(radial.radius.value_or(0)).points(radial.points.value_or(0)).prior(radial.prior);
}

std::string profile_table(const RadialProfileFit& fit) {
  std::string text = "radius_arcsec,brightness,error\n";
  const auto error = fit.error();
  for (std::int64_t i = 0; i < fit.series.count(); ++i) {
    text += fmt::format("{:.17g},{:.17g},{:.17g}\n", fit.series.radii()[i].item<double>(), fit.brightness[i].item<double>(),
                        error[i].item<double>());
  }
  return text;
}

nlohmann::ordered_json describe(const RadialOptions& options, const RadialProfileFit& fit) {
  const auto brightest = fit.brightness.argmax().item<std::int64_t>();
  return {{"data", options.data.data.string()},
          {"unit", "Jy/arcsec2"},
          {"geometry", options.has_geometry() ? "given" : "fitted"},
          {"inclination_deg", fit.geometry.inclination / units::degree},
          {"position_angle_deg", fit.geometry.position_angle / units::degree},
          {"offset_east_arcsec", fit.geometry.offset_east},
          {"offset_north_arcsec", fit.geometry.offset_north},
          {"radius_arcsec", fit.series.radius()},
          {"points", fit.series.count()},
          {"alpha", options.prior.alpha},
          {"smoothness", options.prior.smoothness},
          {"flux_jy", fit.flux},
          {"flux_error_jy", fit.flux_error},
          {"peak", fit.brightness[brightest].item<double>()},
          {"peak_error", fit.error()[brightest].item<double>()},
          {"peak_radius_arcsec", fit.series.radii()[brightest].item<double>()},
          {"longest_baseline_lambda", fit.longest},
          {"chi_squared", fit.chi_squared},
          {"reduced_chi_squared", fit.reduced_chi_squared()},
          {"n_visibilities", fit.samples},
          {"iterations", fit.iterations},
          {"converged", fit.converged}};
}

std::string words(const RadialOptions& options, const RadialProfileFit& fit, const OutputFolder& folder) {
  const auto& geometry = fit.geometry;
  std::string text =
      fmt::format("geometry  {}: inclination {:.4g}, position angle {:.4g} degrees, centre {:.4g}\" East, {:.4g}\" North\n",
                  options.has_geometry() ? "given" : "fitted", geometry.inclination / units::degree,
                  geometry.position_angle / units::degree, geometry.offset_east, geometry.offset_north);
  text += fmt::format("profile   {} radii within {:.4g}\"\n", fit.series.count(), fit.series.radius());
  text += fmt::format("flux      {:.5g} ± {:.2g} Jy\n", fit.flux, fit.flux_error);
  text += fmt::format("chi^2     {:.4g} for each real number\n", fit.reduced_chi_squared());
  text += fmt::format("files     {}\n", folder.path().string());
  return text;
}

int fit_and_write_profile(RadialOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.data);
  use_threads(options.data.threads);
  OutputFolder folder(options.output, settings.verb());
  const auto visibilities = read_disc_data(options.data);
  stop_if_requested();
  const auto geometry = options.has_geometry() ? options.geometry() : fit_geometry(visibilities).geometry;
  stop_if_requested();
  const auto fit = fit_radial_profile(visibilities, geometry, profile_options(options));
  stop_if_requested();
  const auto observed = deprojected_profile(visibilities, geometry, options.bins);
  write_file_atomically(folder.staged("radial.csv"), profile_table(fit));
  write_file_atomically(folder.staged("visibilities.csv"), visibility_table(observed, fit.visibilities_at(observed.q)));
  plot::write_figure(folder.staged("radial.png"), plot::radial_page(fit, observed));
  return commit_with_summary(folder, summary_text(describe(options, fit)), options.output, words(options, fit, folder));
}

}  // namespace

Verb add_radial(CLI::App& program) {
  return add_verb<RadialOptions>(program, radial_help, fit_and_write_profile, {"radial.csv"});
}

}  // namespace mpol::cli
