#include <mpol_cpp/io/sky_unit.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <vector>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/brightness.h>

namespace mpol::io {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Tensor brightness_of(const FitsImage& image, const std::filesystem::path& path) {
  const auto unit = lower_case(image.unit);
  if (unit == "jy/pixel") return image.cube / (image.cell_size * image.cell_size);
  if (unit == "jy/arcsec2" || unit == "jy/arcsec^2" || unit == "jy/arcsec**2") return image.cube;
  if (unit == "jy/beam" && !image.beams.empty()) {
    const auto beams = static_cast<std::int64_t>(image.beams.size()), channels = image.cube.size(0);
    if (beams != 1 && beams != channels) {
      throw DataError(
          fmt::format("\"{}\" has {} beams for {} channel(s); one, or one per channel is needed: correct its table BEAMS",
                      path.string(), beams, channels));
    }
    std::vector<double> areas;
    for (const auto& beam : image.beams) areas.push_back(beam_area(beam));
    return image.cube / at::tensor(areas, torch::kFloat64).reshape({-1, 1, 1});
  }
  throw DataError(fmt::format("\"{}\" is in the unit \"{}\"; give Jy/pixel, Jy/arcsec2, or Jy/beam with its beam", path.string(),
                              image.unit));
}

}  // namespace mpol::io
