#pragma once

#include <string>
#include <vector>

namespace mpol {

/// What a dimension of image cubes means. This is their order from the back: where dimensions are named at all, shapes end with
/// (…, sample, stokes, channel, y, x), and NAXIS1 of FITS files is x, NAXIS2 y, and so on.
enum class ImageAxis {
  x,        ///< columns; l, East left in sky order
  y,        ///< rows; m, South first in sky order
  channel,  ///< frequencies; of a model's parameters also the terms of a spectrum
  stokes,   ///< parts of polarised light (Stokes); kept free: of files alone, where it has length one
  sample,   ///< fits of simulated data; of files alone, tensors have them among the problems
};

std::string to_string(ImageAxis axis);  ///< "x", "y", "channel", "stokes" or "sample"

/// The named dimensions of a cube, in the order of its shape; all dimensions before them are independent problems.
using ImageAxes = std::vector<ImageAxis>;

/// (…, channel, y, x), the axes of every cube in this library.
ImageAxes cube_axes();
/// The names with commas between them, "channel,y,x", as saved states have them.
std::string to_string(const ImageAxes& axes);

}  // namespace mpol
