#include <mpol_cpp/cli/output/run_images.h>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {

std::string name_of_samples(std::int64_t channel, std::int64_t nchan) {
  return nchan == 1 ? std::string("samples.fits") : fmt::format("samples_{:04}.fits", channel);
}

std::filesystem::path RunImages::samples(std::int64_t channel, std::int64_t nchan) const {
  return image.parent_path() / name_of_samples(channel, nchan);
}

std::optional<RunImages> run_images(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) return std::nullopt;
  const RunImages images{folder / "image.fits", folder / "dirty.fits"};
  if (std::filesystem::exists(images.image) && std::filesystem::exists(images.dirty)) return images;
  if (std::filesystem::exists(folder / "image_0000.fits")) {
    throw DataError(error_text("INPUT", folder.string(), "is a run whose channels are files of their own (--split-channels)",
                               "name one of them, as image_0000.fits"));
  }
  return std::nullopt;
}

}  // namespace mpol::cli
