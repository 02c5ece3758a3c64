#pragma once

#include <string>

#include <mpol_cpp/analysis/dirty_products.h>
#include <mpol_cpp/cli/image/image_options.h>

namespace mpol::cli {

/// Tells of what the dirty images of a fit are made.
Imaging imaging_of(const ImageOptions& options);

/// What HISTORY says of the residual image.
std::string residual_words(Imaging imaging);

}  // namespace mpol::cli
