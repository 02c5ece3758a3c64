#include <mpol_cpp/images/image_axes.h>

#include <mpol_cpp/core/error.h>

namespace mpol {

std::string to_string(ImageAxis axis) {
  switch (axis) {
    case ImageAxis::x:
      return "x";
    case ImageAxis::y:
      return "y";
    case ImageAxis::channel:
      return "channel";
    case ImageAxis::stokes:
      return "stokes";
    case ImageAxis::sample:
      return "sample";
  }
  throw ValueError("unknown axis of an image");
}

ImageAxes cube_axes() { return {ImageAxis::channel, ImageAxis::y, ImageAxis::x}; }

std::string to_string(const ImageAxes& axes) {
  std::string text;
  for (const auto axis : axes) {
    if (!text.empty()) text += ',';
    text += to_string(axis);
  }
  return text;
}

}  // namespace mpol
