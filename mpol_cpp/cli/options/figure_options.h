#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <mpol_cpp/cli/program/choices.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/io/fits.h>
#include <mpol_cpp/plot/figures/image_figure.h>

namespace mpol::cli {

/// The choices of --unit of images.
inline constexpr auto image_unit_choices =
    std::to_array<NamedChoice<ImageUnit>>({{"Jy/beam", ImageUnit::jy_per_beam}, {"Jy/arcsec2", ImageUnit::jy_per_arcsec2}});

/// A unit of FITS (BUNIT) as figures write it.
std::string unit_label(const std::string& unit);

/// What a header says of an image, for its figure: unit, frequencies of the channels, the beam of each.
/// @param nchan  channels of the image
plot::ImageFigureOptions figure_options(const io::FitsOptions& header, std::int64_t nchan);

}  // namespace mpol::cli
