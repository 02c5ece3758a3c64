#pragma once

#include <optional>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/cli/image/image_options.h>
#include <mpol_cpp/cli/options/grid_choice.h>

namespace mpol::cli {

/// What is taken for the noise, and what the data say of it before a fit.
/// @param residuals  of the data without their source, in units of sigma; nothing where that cannot be told
Choice noise_choice(const ImageOptions& options, const std::optional<ResidualStatistics>& residuals);

/// Whether residuals have wilder ones among them than Gaussian noise: of values beyond four robust sigma, of which it has
/// 6e-5, a five-hundredth or more, and at least ten.
bool has_heavy_tails(const ResidualStatistics& residuals);

/// Within these factors sigma is taken to be as the weights say.
inline constexpr double least_sigma = 0.87, largest_sigma = 1.15;

}  // namespace mpol::cli
