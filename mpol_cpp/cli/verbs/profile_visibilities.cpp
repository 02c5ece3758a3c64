#include <mpol_cpp/cli/verbs/profile_visibilities.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/cli/program/stop_request.h>
#include <mpol_cpp/cli/output/summary.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/profile_figure.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol::cli {
namespace {

constexpr double kilo = 1e3;
constexpr std::int64_t default_bins = 50;

/// The longest deprojected baseline is not longer than the longest one.
double longest_baseline(const Visibilities& visibilities) {
  constexpr std::int64_t block = 1 << 20;
  double longest = 0;
  for (std::int64_t c = 0; c < visibilities.baselines().nchan(); ++c) {
    for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += block) {
      const auto [u, v] = visibilities.baselines().block(c, begin, std::min(begin + block, visibilities.nvis()));
      longest = std::max(longest, u.square().add(v.square()).max().item<double>());
    }
  }
  return std::sqrt(longest) * (1 + 1e-9);
}

std::vector<double> bin_edges(const VisibilityProfileOptions& options, const Visibilities& visibilities) {
  if (!options.bin_width && !options.max_baseline) return {};
  const double longest = options.max_baseline ? kilo * *options.max_baseline : longest_baseline(visibilities);
  const double width = options.bin_width ? kilo * *options.bin_width : longest / default_bins;
  const auto bins = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(longest / width * (1 - 1e-9))));
  if (bins > 1'000'000) {
    throw UsageError(
        error_text("--bin-width", fmt::format("{}", width / kilo), fmt::format("makes {} bins", bins), "widen the bins"));
  }
  std::vector<double> edges;
  edges.reserve(static_cast<std::size_t>(bins) + 1);
  for (std::int64_t i = 0; i <= bins; ++i) edges.push_back(width * static_cast<double>(i));
  return edges;
}

std::string profile_csv(const VisibilityProfile& profile) {
  std::string text = "channel,q_lambda,real,imag,real_error,imag_error,samples\n";
  const auto* mean = profile.mean.const_data_ptr<c10::complex<double>>();
  const auto* error = profile.error.const_data_ptr<c10::complex<double>>();
  const auto bins = profile.q.size(0);
  for (std::int64_t c = 0; c < profile.mean.size(0); ++c) {
    for (std::int64_t i = 0; i < bins; ++i) {
      const auto at = c * bins + i;
      text += fmt::format("{},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{}\n", c, profile.q[i].item<double>(), mean[at].real(),
                          mean[at].imag(), error[at].real(), error[at].imag(), profile.samples[c][i].item<std::int64_t>());
    }
  }
  return text;
}

}  // namespace

void declare(OptionSet& options, VisibilityProfileOptions& profile) {
  options.number("--bin-width", profile.bin_width, Range::positive(), "KLAMBDA",
                 "Visibilities: width of a bin of deprojected baseline length; default: 50 bins", Record::result);
  options.number("--max-baseline", profile.max_baseline, Range::positive(), "KLAMBDA",
                 "Visibilities: longest baseline; default: the longest there is", Record::result);
  options.flag("--face-on", profile.face_on, "Visibilities: divide by cos i, the flux of an optically thick disc seen face on",
               Record::result);
  options.text("--channels", profile.data.channels, "LIST", "Channels to use, from 0, as in 0,3-7; default: all", Record::result);
  options.choice("--uv-unit", profile.data.uv_unit, uv_unit_choices, "Visibilities: unit of uu and vv; default: as the file says",
                 Record::result);
  options.text("--frequency", profile.data.frequency, "HZ[,HZ...]", "Visibilities: frequency of the channels", Record::result);
  options.number("--cell-size", profile.data.cell_size, Range::positive(), "ARCSEC",
                 "Visibilities: with --npix, a grid that the baselines must suit, lest they are in another unit", Record::result);
  options.integer("--npix", profile.data.npix, Range::between(2, 1e9), "Visibilities: pixels of that grid along each axis, even",
                  Record::result);
  declare_set(options, profile.data);
  declare_mode(options, profile.data);
  options.only({"--cell-size"}, "with --npix", [&profile] { return profile.data.npix.has_value(); });
  options.only({"--npix"}, "with --cell-size", [&profile] { return profile.data.cell_size.has_value(); });
}

std::vector<std::string> visibility_option_names() {
  return {"--bin-width", "--max-baseline", "--face-on", "--uv-unit", "--frequency", "--cell-size", "--npix"};
}

void settle(VisibilityProfileOptions& profile, const std::filesystem::path& file) {
  profile.data.data = file;
  settle(profile.data);
}

int profile_visibilities(const VisibilityProfileOptions& options, const GeometryOptions& geometry, const OutputOptions& output,
                         OutputFolder& folder) {
  const auto visibilities = read_visibilities(options.data);
  if (options.data.cell_size && options.data.npix)
    check_grid_holds(visibilities, options.data, GridCoords(*options.data.cell_size, *options.data.npix));
  stop_if_requested();
  const auto scale = options.face_on ? FluxScale::face_on : FluxScale::observed;
  auto profile = radial_v(visibilities, geometry.geometry(),
                          RadialVisibilityOptions().edges(bin_edges(options, visibilities)).flux_scale(scale));
  profile.mean = profile.mean.contiguous();
  profile.error = profile.error.contiguous();
  if (profile.samples.sum().item<std::int64_t>() == 0) {
    throw DataError(error_text("--max-baseline", fmt::format("{}", options.max_baseline.value_or(0)),
                               "there is no shorter baseline", "raise it"));
  }
  write_file_atomically(folder.staged("profile.csv"), profile_csv(profile));
  plot::write_figure(folder.staged("profile.png"), plot::profile_page(profile));
  const nlohmann::ordered_json json = {{"data", options.data.data.string()},
                                       {"unit", "Jy"},
                                       {"inclination_deg", geometry.inclination},
                                       {"position_angle_deg", geometry.position_angle},
                                       {"offset_east_arcsec", geometry.offset_east},
                                       {"offset_north_arcsec", geometry.offset_north},
                                       {"face_on", options.face_on},
                                       {"n_channels", profile.mean.size(0)},
                                       {"n_bins", profile.q.size(0)},
                                       {"n_visibilities", profile.samples.sum().item<std::int64_t>()}};
  return commit_with_summary(folder, summary_text(json), output,
                             fmt::format("bins   {} of {:.4g} klambda\nfiles  {}\n", profile.q.size(0),
                                         2e-3 * profile.q[0].item<double>(), folder.path().string()));
}

}  // namespace mpol::cli
