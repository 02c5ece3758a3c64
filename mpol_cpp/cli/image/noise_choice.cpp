#include <mpol_cpp/cli/image/noise_choice.h>

#include <mpol_cpp/core/format.h>

namespace mpol::cli {

bool has_heavy_tails(const ResidualStatistics& residuals) {
  constexpr double share = 2e-3, fewest = 10;
  return residuals.beyond_four >= share && residuals.beyond_four * 2 * static_cast<double>(residuals.samples) >= fewest;
}

Choice noise_choice(const ImageOptions& options, const std::optional<ResidualStatistics>& residuals) {
  Choice choice{"noise", choice_name(options.noise, noise_choices), {}};
  if (!residuals) {
    choice.reason = "the source needs too many pixels to be taken out for a look at the noise: the fit tells";
    return choice;
  }
  choice.reason = fmt::format("without their source the data scatter {:.2f} times what the weights say", residuals->sigma_factor);
  if (has_heavy_tails(*residuals)) {
    choice.reason +=
        fmt::format(", {:.1f} % of them beyond four sigma, of which Gaussian noise has 0.006 %", 100 * residuals->beyond_four);
    if (options.is_gaussian()) choice.reason += ": compare with --noise student --likelihood loose";
  }
  return choice;
}

}  // namespace mpol::cli
