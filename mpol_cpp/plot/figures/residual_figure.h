#pragma once

#include <string>

#include <mpol_cpp/analysis/residuals.h>
#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// The page of the histogram of normalised residuals beside the unit Gaussian, on a linear and on a logarithmic axis.
Page residual_page(const ResidualHistogram& histogram, const std::string& title = "");

}  // namespace mpol::plot
