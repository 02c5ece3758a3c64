#pragma once

#include <string>

#include <mpol_cpp/analysis/disc_fit/geometry_profile.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// The page of a fitted geometry: real and imaginary parts of visibilities against the length of their baselines, on the left as
/// they are, on the right centred and deprojected, with the fitted model.
Page geometry_page(const GeometryProfile& profile, const std::string& title = "");

}  // namespace mpol::plot
