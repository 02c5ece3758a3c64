#include <mpol_cpp/cli/measuring/profile_samples.h>

#include <cmath>
#include <limits>
#include <optional>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/images/restore.h>

namespace mpol::cli {
namespace {

/// What a header says of the errors, or what is taken where it says nothing. @param least  that it may be
double number_in_header(const std::optional<double>& written, const char* card, double least, double otherwise,
                        const std::string& file, const std::string& option) {
  const double number = written.value_or(otherwise);
  if (number >= least && std::isfinite(number)) return number;
  throw UsageError(error_text(option, file, fmt::format("has {} {}: it must be finite, {} or more", card, number, least),
                              "take the file of --keep-samples"));
}

}  // namespace

Tensor error_by_samples(const std::filesystem::path& path, const ProfileOfImage& image, const BrightnessProfile& channel,
                        const std::vector<Beam>& beams) {
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
  const double factor = number_in_header(samples.header.error_factor(), "ERRFACT", 1, 1, file, image.option);
  const double growth =
      number_in_header(samples.header.error_growth(), "ERRGROW", std::numeric_limits<double>::lowest(), 0, file, image.option);
  const auto seen = beams.empty()
                        ? samples.cube
                        : restore(samples.cube.unsqueeze(1) / samples.coords.cell_area(), samples.coords, beams).squeeze(1);
  return sampled_error(channel, radial_i(seen, image.coords, image.geometry, image.how), factor, growth);
}

}  // namespace mpol::cli
