#pragma once

#include <optional>
#include <string>

#include <mpol_cpp/analysis/radial_fit/radial_profile_fit.h>
#include <mpol_cpp/analysis/radial_profile.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// The page of a radial brightness profile with error bars; of more than seven channels seven evenly spaced ones, which the
/// title says.
/// @param unit          of the brightness
/// @param radius_shown  largest radius of the figure, arcsec; unset: one and a half times that of the outermost ring
///                      above a fiftieth of the peak
Page profile_page(const BrightnessProfile& profile, const std::string& unit, const std::string& title = "",
                  std::optional<double> radius_shown = std::nullopt);

/// The page of real and imaginary parts of visibilities against deprojected baseline length, with error bars.
Page profile_page(const VisibilityProfile& profile, const std::string& title = "");

/// The page of a fitted radial profile (radial_figure.cpp): brightness against radius with its error, real and imaginary parts of
/// the centred visibilities against deprojected baseline with the fit, and their power with that of the prior, on logarithmic
/// axes.
/// @param observed  deprojected_profile() of the data with the fit's geometry
Page radial_page(const RadialProfileFit& fit, const VisibilityProfile& observed, const std::string& title = "");

}  // namespace mpol::plot
