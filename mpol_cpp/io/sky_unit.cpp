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

std::optional<Tensor> unit_area(const std::string& written, const std::vector<Beam>& beams, double cell_size) {
  const auto unit = lower_case(written);
  if (unit == "jy/pixel") return at::tensor({cell_size * cell_size}, torch::kFloat64);
  if (unit == "jy/arcsec2" || unit == "jy/arcsec^2" || unit == "jy/arcsec**2") return at::tensor({1.0}, torch::kFloat64);
  if (unit != "jy/beam" || beams.empty()) return std::nullopt;
  std::vector<double> areas;
  for (const auto& beam : beams) areas.push_back(beam_area(beam));
  return at::tensor(areas, torch::kFloat64);
}

Tensor brightness_area(const FitsImage& image, std::int64_t channels, const std::filesystem::path& path) {
  const auto area = unit_area(image.unit, image.beams, image.cell_size);
  if (!area) {
    throw DataError(fmt::format("\"{}\" is in the unit \"{}\"; give Jy/pixel, Jy/arcsec2, or Jy/beam with its beam",
                                path.string(), image.unit));
  }
  const auto areas = area->size(0);
  if (areas != 1 && areas != channels) {
    throw DataError(
        fmt::format("\"{}\" has {} beams for {} channel(s); one, or one per channel is needed: correct its table BEAMS",
                    path.string(), areas, channels));
  }
  return *area;
}

Tensor brightness_of(const FitsImage& image, const std::filesystem::path& path) {
  return image.cube / brightness_area(image, image.cube.size(0), path).reshape({-1, 1, 1});
}

}  // namespace mpol::io
