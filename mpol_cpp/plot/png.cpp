#include <mpol_cpp/plot/png.h>

#include <png.h>

#include <array>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::plot {
namespace {

constexpr std::string_view signature = "\x89PNG\r\n\x1a\n";
constexpr std::string_view last_chunk = "IEND";

png_image simplified_image() {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  return image;
}

}  // namespace

std::string encode_png(const Picture& picture) {
  const auto bytes = static_cast<std::size_t>(3 * picture.width * picture.height);
  if (picture.width < 1 || picture.height < 1 || picture.pixels.size() != bytes)
    throw ValueError(fmt::format("picture of {} x {} pixels with {} bytes: expected {}", picture.width, picture.height,
                                 picture.pixels.size(), bytes));
  auto image = simplified_image();
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string encoded(size, '\0');
  if (png_image_write_to_memory(&image, encoded.data(), &size, 0, picture.pixels.data(), 0, nullptr) == 0)
    throw Error(fmt::format("PNG of {} x {} pixels: {}", picture.width, picture.height, image.message));
  encoded.resize(size);
  return encoded;
}

Picture read_png(const std::filesystem::path& path) {
  auto image = simplified_image();
  const auto fail = [&] {
    const std::string reason = image.message;
    png_image_free(&image);
    throw FileError(fmt::format("\"{}\" cannot be read as PNG: {}", path.string(), reason));
  };
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) fail();
  image.format = PNG_FORMAT_RGB;
  Picture picture{image.width, image.height, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, picture.pixels.data(), 0, nullptr) == 0) fail();
  return picture;
}

bool is_complete_png(std::string_view bytes) {
  return bytes.size() > 57 && bytes.starts_with(signature) && bytes.substr(bytes.size() - 8, 4) == last_chunk;
}

}  // namespace mpol::plot
