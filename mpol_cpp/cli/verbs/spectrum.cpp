#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/sources/source_fluxes.h>
#include <mpol_cpp/cli/measuring/spectrum_figure.h>
#include <mpol_cpp/cli/measuring/spectrum_sources.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/image_panel.h>
#include <mpol_cpp/serialize/atomic_file.h>
#include <mpol_cpp/visibilities/hermitian_pairs.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp spectrum_help = {
    "spectrum", "Fluxes of sources in each channel of the visibilities, with errors",
    "Example:\n  mpol spectrum vis.npz -o spectrum --sources 'point:0.3,-0.1; gaussian:0.8,35,60'\n"
    "  mpol spectrum vis.npz -o spectrum"};

struct SpectrumOptions {
  OutputOptions output;
  DataOptions data;
  std::string sources = "point";
};

/// The sources, and what their fluxes are.
struct Spectrum {
  std::vector<NamedSource> sources;
  SourceFluxes found;
  std::vector<double> frequencies;  ///< Hz, of the channels; empty: not known
  double samples = 0;               ///< of one channel
};

void declare(OptionSet& options, SpectrumOptions& spectrum) {
  auto& data = spectrum.data;
  declare_file(options, data);
  options.text("--sources", spectrum.sources, "LIST",
               "Sources whose fluxes are found together, with ; between them: point:EAST,NORTH, or gaussian:FWHM, ring:RADIUS, "
               "broad-ring:RADIUS,WIDTH, disc:RADIUS, each with ,INCLINATION,POSITION_ANGLE,EAST,NORTH, in arcsec and degrees; "
               "what is left out at the end is 0",
               Record::result);
  declare_arrays(options, data);
  declare_threads(options, data.threads);
  declare_set(options, data);
  declare_conjugate(options, data);
  declare(options, spectrum.output);
  data.set.mode = ImageMode::cube;
}

Spectrum measure(std::vector<NamedSource> sources, const Visibilities& visibilities) {
  Spectrum spectrum{std::move(sources), {}, {}, static_cast<double>(visibilities.nvis())};
  std::vector<DiscModel> models;
  for (const auto& source : spectrum.sources) models.push_back(source.model);
  spectrum.found = source_fluxes(visibilities, models);
  if (visibilities.frequencies().defined()) spectrum.frequencies = plot::to_vector(visibilities.frequencies());
  return spectrum;
}

/// Chi^2 for each degree of freedom: samples have a real and an imaginary part.
double reduced(const Spectrum& spectrum, std::int64_t channel) {
  const double freedom = 2 * spectrum.samples - static_cast<double>(spectrum.sources.size());
  return freedom > 0 ? spectrum.found.chi_squared[channel].item<double>() / freedom : std::numeric_limits<double>::quiet_NaN();
}

std::string csv(const Spectrum& spectrum) {
  std::string text = "channel,frequency_hz,source,name,flux_jy,error_jy\n";
  for (std::int64_t c = 0; c < spectrum.found.flux.size(0); ++c) {
    const auto place = static_cast<std::size_t>(c);
    const auto frequency = spectrum.frequencies.empty() ? std::string() : fmt::format("{:.17g}", spectrum.frequencies[place]);
    for (std::size_t s = 0; s < spectrum.sources.size(); ++s) {
      const auto source = static_cast<std::int64_t>(s);
      text += fmt::format("{},{},{},\"{}\",{:.17g},{:.17g}\n", c, frequency, s, spectrum.sources[s].name,
                          spectrum.found.flux[c][source].item<double>(), spectrum.found.error[c][source].item<double>());
    }
  }
  return text;
}

/// Mean of a source's flux over the channels, with the weights of its errors.
std::pair<double, double> mean_flux(const Spectrum& spectrum, std::int64_t source) {
  const auto weight = spectrum.found.error.select(1, source).square().reciprocal();
  const double sum = weight.sum().item<double>();
  return {(weight * spectrum.found.flux.select(1, source)).sum().item<double>() / sum, 1 / std::sqrt(sum)};
}

std::string summary_json(const SpectrumOptions& options, const Spectrum& spectrum) {
  nlohmann::ordered_json sources = nlohmann::ordered_json::array(), fits = nlohmann::ordered_json::array();
  for (std::size_t s = 0; s < spectrum.sources.size(); ++s) {
    const auto source = static_cast<std::int64_t>(s);
    const auto [mean, error] = mean_flux(spectrum, source);
    sources.push_back({{"name", spectrum.sources[s].name},
                       {"flux_jy", plot::to_vector(spectrum.found.flux.select(1, source))},
                       {"flux_error_jy", plot::to_vector(spectrum.found.error.select(1, source))},
                       {"mean_flux_jy", mean},
                       {"mean_flux_error_jy", error}});
  }
  for (std::int64_t c = 0; c < spectrum.found.flux.size(0); ++c) {
    const double value = reduced(spectrum, c);
    fits.push_back(std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr);
  }
  return summary_text({{"data", options.data.data.string()},
                       {"n_channels", spectrum.found.flux.size(0)},
                       {"n_visibilities", spectrum.samples * static_cast<double>(spectrum.found.flux.size(0))},
                       {"sources", sources},
                       {"reduced_chi_squared", fits}});
}

plot::Page page_of(const Spectrum& spectrum) {
  std::vector<FluxCurve> curves;
  for (std::size_t s = 0; s < spectrum.sources.size(); ++s) {
    const auto source = static_cast<std::int64_t>(s);
    curves.push_back({spectrum.sources[s].name, plot::to_vector(spectrum.found.flux.select(1, source)),
                      plot::to_vector(spectrum.found.error.select(1, source))});
  }
  return spectrum_page(curves, spectrum.frequencies);
}

std::string words(const Spectrum& spectrum, const OutputFolder& folder) {
  std::string text;
  for (std::size_t s = 0; s < spectrum.sources.size(); ++s) {
    const auto [mean, error] = mean_flux(spectrum, static_cast<std::int64_t>(s));
    text += fmt::format("{}: {:.4g} ± {:.2g} Jy, the mean of {} channel(s)\n", spectrum.sources[s].name, mean, error,
                        spectrum.found.flux.size(0));
  }
  return text + fmt::format("files  {}\n", folder.path().string());
}

int measure_spectrum(SpectrumOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output, options.data);
  use_threads(options.data.threads);
  auto sources = parse_sources(options.sources);
  OutputFolder folder(options.output, settings.verb());
  const auto visibilities = read_visibilities(options.data);
  if (find_hermitian_pairs(visibilities).present()) {
    log_warning("the data hold Hermitian pairs, which count twice and make the errors too small: leave out the half at (-u, -v)");
  }
  stop_if_requested();
  const auto spectrum = measure(std::move(sources), visibilities);
  write_file_atomically(folder.staged("spectrum.csv"), csv(spectrum));
  plot::write_figure(folder.staged("spectrum.png"), page_of(spectrum));
  return commit_with_summary(folder, summary_json(options, spectrum), options.output, words(spectrum, folder));
}

}  // namespace

Verb add_spectrum(CLI::App& program) {
  return add_verb<SpectrumOptions>(program, spectrum_help, measure_spectrum, {"spectrum.csv"});
}

}  // namespace mpol::cli
