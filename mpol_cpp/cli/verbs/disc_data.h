#pragma once

#include <string>

#include <mpol_cpp/analysis/disc_fit/geometry_profile.h>
#include <mpol_cpp/cli/options/data_options.h>
#include <mpol_cpp/cli/program/option_set.h>

namespace mpol::cli {

/// Options of the data of a verb that looks at a disc in the visibilities and makes no image: a grid is only what baselines must
/// suit.
void declare_disc_data(OptionSet& options, DataOptions& data);

/// The visibilities, compared with that grid where it is given; warns of Hermitian pairs, which errors do not bear.
/// @throws mpol::Error when they cannot be read, or do not suit the grid
Visibilities read_disc_data(const DataOptions& data);

/// Means in bins of baseline length as CSV: `q_lambda,real,imag,error,model,samples`. @param model  Jy, of each bin
std::string visibility_table(const VisibilityProfile& observed, const Tensor& model);

}  // namespace mpol::cli
