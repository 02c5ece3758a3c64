#pragma once

#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/figures/image_figure.h>

namespace mpol::cli {

/// What a header says of an image, for its figure: unit, frequencies of the channels, the beam of each.
/// @param nchan  channels of the image
plot::ImageFigureOptions figure_options(const io::FitsOptions& header, std::int64_t nchan);

}  // namespace mpol::cli
