#include "picture.h"

#include <stdexcept>
#include <string>

#include <png.h>

namespace mpol::testing {

Picture read_png(const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto fail = [&] {
    const std::string reason = image.message;
    png_image_free(&image);
    throw std::runtime_error(path.string() + " cannot be read as PNG: " + reason);
  };
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) fail();
  image.format = PNG_FORMAT_RGB;
  Picture picture{image.width, image.height, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, picture.pixels.data(), 0, nullptr) == 0) fail();
  return picture;
}

}  // namespace mpol::testing
