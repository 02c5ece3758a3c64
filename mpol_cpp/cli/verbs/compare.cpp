#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/options/sky_grid.h>
#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/cli/program/add_verb.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/verb_frame.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/models/image_cube.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/comparison_figure.h>

namespace mpol::cli {
namespace {

constexpr VerbHelp compare_help = {"compare", "Compare two images on the same grid: the difference is B - A",
                                   "Example:\n  mpol compare disc/image.fits again/image.fits -o comparison"};

struct CompareOptions {
  OutputOptions output;
  std::filesystem::path first, second;
  std::optional<std::int64_t> threads;
};

void declare(OptionSet& options, CompareOptions& compare) {
  options.app().add_option("A", compare.first, "Image or cube in a FITS file")->type_name("FILE");
  options.app().add_option("B", compare.second, "Another one on the same grid")->type_name("FILE");
  declare_threads(options, compare.threads);
  declare(options, compare.output);
}

/// Pearson's correlation of the pixels of two images; 0 where one of them is constant.
double correlation(const Tensor& a, const Tensor& b) {
  const auto x = a - a.mean(), y = b - b.mean();
  const double scale = std::sqrt((x * x).sum().item<double>() * (y * y).sum().item<double>());
  return scale > 0 ? (x * y).sum().item<double>() / scale : 0.0;
}

/// Whether beams are the same to 1 %, as headers have them.
bool same_beams(const std::vector<Beam>& a, const std::vector<Beam>& b) {
  constexpr double tolerance = 0.01;
  const auto alike = [](const Beam& x, const Beam& y) {
    const double round = 1 - x.minor / x.major;  // the position angle of a round beam says nothing
    return std::abs(x.major / y.major - 1) < tolerance && std::abs(x.minor / y.minor - 1) < tolerance &&
           std::abs(std::sin(x.position_angle - y.position_angle)) * round < tolerance;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), alike);
}

std::string summary_json(const CompareOptions& options, const SkyImage& a, const SkyImage& b, const Tensor& difference) {
  nlohmann::ordered_json channels = nlohmann::ordered_json::array();
  const auto flux_a = flux(a.cube, a.coords), flux_b = flux(b.cube, b.coords);
  for (std::int64_t c = 0; c < difference.size(0); ++c) {
    const double peak = a.cube[c].abs().max().item<double>(), largest = difference[c].abs().max().item<double>();
    const double norm = a.cube[c].norm().item<double>(), distance = difference[c].norm().item<double>();
    nlohmann::ordered_json channel = {
        {"flux_a_jy", flux_a[c].item<double>()},
        {"flux_b_jy", flux_b[c].item<double>()},
        {"peak_a", a.cube[c].max().item<double>()},
        {"peak_b", b.cube[c].max().item<double>()},
        {"rms_difference", distance / static_cast<double>(a.coords.npix())},
        {"max_abs_difference", largest},
        {"max_relative_to_peak", nullptr},
        {"relative_distance", nullptr},
        {"correlation", correlation(a.cube[c], b.cube[c])},
    };
    if (peak > 0) channel["max_relative_to_peak"] = largest / peak;
    if (norm > 0) channel["relative_distance"] = distance / norm;
    channels.push_back(channel);
  }
  const nlohmann::ordered_json json = {
      {"a", options.first.string()}, {"b", options.second.string()}, {"unit", "Jy/arcsec2"}, {"channels", channels}};
  return summary_text(json);
}

std::string words(const SkyImage& a, const SkyImage& b, const Tensor& difference, const OutputFolder& folder) {
  const double peak = a.cube.abs().max().item<double>(), largest = difference.abs().max().item<double>();
  const double norm = a.cube.norm().item<double>();
  const auto share = [](double part, double whole) {
    return whole > 0 ? fmt::format("{:.3g}", part / whole) : std::string("unknown part");
  };
  std::string text = fmt::format("flux                A {:.4g} Jy, B {:.4g} Jy, all channels\n",
                                 flux(a.cube, a.coords).sum().item<double>(), flux(b.cube, b.coords).sum().item<double>());
  text += fmt::format("largest difference  {:.4g} Jy/arcsec2, {} of the peak of A\n", largest, share(largest, peak));
  text += fmt::format("distance            {} of the norm of A; correlation {:.4f}\n",
                      share(difference.norm().item<double>(), norm), correlation(a.cube, b.cube));
  return text + fmt::format("files               {}\n", folder.path().string());
}

void check_both_given(const CompareOptions& options) {
  if (!options.second.empty()) return;
  throw UsageError(error_text(options.first.empty() ? "A and B" : "B", "missing", "there must be two images to compare",
                              "name two FITS files"));
}

int make_comparison(CompareOptions& options, const OptionSet& settings) {
  begin_verb_with_folder(settings, options.output);
  check_both_given(options);
  use_threads(options.threads);
  OutputFolder folder(options.output, settings.verb());
  const auto a = read_sky_image(options.first, "A"), b = read_sky_image(options.second, "B");
  check_same_grid(a, b, options.second.string());
  if (!same_beams(a.header.beams(), b.header.beams()))
    log_warning("A and B have different beams: their difference shows the beams too; bring them to one with mpol convolve");
  stop_if_requested();
  const auto difference = b.cube - a.cube;
  auto header = a.header;
  header.beams({}).unit(io::FitsUnit::jy_per_arcsec2);
  std::vector<std::string> history = {
      fmt::format("mpol compare: {} minus {}", options.second.filename().string(), options.first.filename().string())};
  for (const auto* image : {&a, &b}) add_reprojection(history, *image);
  header.history(history);
  io::write_fits(folder.staged("difference.fits"), difference, a.coords, header);
  plot::write_figure(folder.staged("comparison.png"), plot::comparison_page(a.cube, b.cube, a.coords));
  return commit_with_summary(folder, summary_json(options, a, b, difference), options.output, words(a, b, difference, folder));
}

}  // namespace

Verb add_compare(CLI::App& program) {
  return add_verb<CompareOptions>(program, compare_help, make_comparison, {"difference.fits"});
}

}  // namespace mpol::cli
