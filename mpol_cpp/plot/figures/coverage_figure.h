#pragma once

#include <string>

#include <mpol_cpp/plot/page.h>
#include <mpol_cpp/visibilities/baselines.h>

namespace mpol::plot {

/// Where the uv plane was sampled: both Hermitian halves of the baselines of all channels, in kilo-wavelengths, evenly
/// thinned out to what a panel can show.
CurvePanel coverage_panel(const Baselines& baselines);

/// The page of the uv coverage.
Page coverage_page(const Baselines& baselines, const std::string& title = "");

}  // namespace mpol::plot
