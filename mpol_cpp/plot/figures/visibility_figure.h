#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/plot/figures/summary_figure.h>
#include <mpol_cpp/plot/page.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::plot {

/// Visibilities of all channels averaged in rings of equal width in baseline length; empty rings are left out. The errors
/// are those of thermal noise as the weights claim it; of a model, which has none, they are 0.
struct VisibilityBins {
  std::vector<double> q;                ///< mean baseline length, wavelengths
  std::vector<double> amplitude;        ///< root of the weighted mean of |V|^2, of data less what noise adds to it, Jy
  std::vector<double> amplitude_error;  ///< Jy
  std::vector<double> phase;            ///< of the weighted mean of V, turned to v >= 0, degrees; of data NaN below 3 sigma
  std::vector<double> phase_error;      ///< degrees
};

/// @param bins        number of rings from 0 to the longest baseline, >= 1  @throws ValueError otherwise
/// @param noise_bias  subtract it of data, keep the values of models
VisibilityBins binned_visibilities(const Visibilities& visibilities, std::int64_t bins = 40,
                                   NoiseBias noise_bias = NoiseBias::subtract);

/// How the figure of visibilities looks.
struct VisibilityFigureOptions {
  std::string title;                  ///< of the page; empty: none
  std::optional<Visibilities> model;  ///< at the same baselines, drawn as a line
  std::int64_t bins = 40;             ///< rings from 0 to the longest baseline, >= 1
};

/// The page of uv coverage, amplitude and phase against baseline length, with error bars.
/// @throws ValueError for fewer than one bin
Page visibility_page(const Visibilities& visibilities, const VisibilityFigureOptions& options = {});

}  // namespace mpol::plot
