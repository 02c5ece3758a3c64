#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// The response of a matched filter along the channels.
struct FilterCurve {
  std::string name;              ///< of the template
  std::vector<double> x;         ///< of the middle of the template, in any unit that all curves share
  std::vector<double> response;  ///< in units of its noise, one for each x
};

/// The page of the responses of matched filters, with their peaks marked and lines at 0 and at five times the noise; of more
/// than six templates the six with the highest peaks, which the title says.
/// @param x_label  what x is, with its unit
/// @throws ValueError without a curve or for one without points
Page filter_page(const std::vector<FilterCurve>& curves, const std::string& x_label, const std::string& title = "");

}  // namespace mpol::plot
