#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/plot/page.h>

namespace mpol::cli {

/// The flux of a source in each channel.
struct FluxCurve {
  std::string name;                 ///< of the source
  std::vector<double> flux, error;  ///< Jy, one for each channel
};

/// The page of spectra: flux against frequency, or channel, with error bars; of more than seven sources the first seven, which
/// the title says.
/// @param frequencies  Hz, of the channels; empty: not known
/// @throws ValueError without a source, or for one with other channels than the first
plot::Page spectrum_page(const std::vector<FluxCurve>& curves, const std::vector<double>& frequencies);

}  // namespace mpol::cli
