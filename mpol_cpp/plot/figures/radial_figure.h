#pragma once

#include <string>

#include <mpol_cpp/analysis/radial_fit/radial_profile_fit.h>
#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// The page of a fitted radial profile: brightness against radius with its error, real and imaginary parts of the centred visibilities
/// against deprojected baseline with the fit, and their power with that of the prior, on logarithmic axes.
/// @param observed  deprojected_profile() of the data with the fit's geometry
Page radial_page(const RadialProfileFit& fit, const VisibilityProfile& observed, const std::string& title = "");

}  // namespace mpol::plot
