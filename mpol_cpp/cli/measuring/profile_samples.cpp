#include <mpol_cpp/cli/measuring/profile_samples.h>

#include <cmath>
#include <limits>
#include <optional>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/restore.h>
#include <mpol_cpp/uncertainty/image_growth.h>

namespace mpol::cli {
namespace {

struct Limits {
  double least, most;
};

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr Limits any_number{-infinite, infinite};

/// What a header says of the errors, or what is taken where it says nothing.
double number_in_header(const std::optional<double>& written, const char* card, Limits limits, double otherwise,
                        const std::string& file, const std::string& option) {
  const double number = written.value_or(otherwise);
  if (number >= limits.least && number <= limits.most && std::isfinite(number)) return number;
  throw UsageError(error_text(option, file,
                              fmt::format("has {} {}: it must be between {} and {}", card, number, limits.least, limits.most),
                              "take the file of --keep-samples"));
}

}  // namespace

Tensor error_by_samples(const std::filesystem::path& path, const ProfileOfImage& image, const Tensor& sky,
                        const BrightnessProfile& channel, const std::vector<Beam>& beams) {
  const auto file = path.string();
  const auto samples = read_sky_image(path, image.option, SkyUnit::as_written);
  if (samples.coords != image.coords || samples.unit != image.unit) {
    throw UsageError(error_text(
        image.option, file,
        fmt::format("has {} pixels of {}\" in {}, the image {} of {}\" in {}", samples.coords.npix(), samples.coords.cell_size(),
                    samples.unit, image.coords.npix(), image.coords.cell_size(), image.unit),
        "take the samples of the same run"));
  }
  if (samples.cube.size(0) < 2) {
    throw UsageError(error_text(image.option, file, "has one plane, which tells no spread", "take the file of --keep-samples"));
  }
  const auto& known = samples.header.sample_errors();
  const double factor = number_in_header(known.factor, "ERRFACT", {1, infinite}, 1, file, image.option);
  const double field = image.coords.cell_size() * static_cast<double>(image.coords.npix());
  const ImageGrowth growth{at::tensor({number_in_header(known.growth, "ERRGROW", any_number, 0, file, image.option)}),
                           at::tensor({number_in_header(known.width, "ERRWIDTH", {0, field}, 0, file, image.option)})};
  const auto profile_of = [&](Tensor planes) {
    for (std::int64_t plane = 0; !beams.empty() && plane < planes.size(0); ++plane) {  // one at a time takes less memory
      auto own = planes.narrow(0, plane, 1);
      own.copy_(restore(own / image.coords.cell_area(), image.coords, beams));
    }
    return radial_i(planes, image.coords, image.geometry, image.how);
  };
  return sampled_error(channel, profile_of(samples.cube), factor,
                       profile_of(growth.of_channel(0, sky[0], image.coords).unsqueeze(0)).mean);
}

}  // namespace mpol::cli
