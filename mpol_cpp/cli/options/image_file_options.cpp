#include <mpol_cpp/cli/options/image_file_options.h>

#include <mpol_cpp/cli/options/precision.h>
#include <mpol_cpp/cli/program/threads.h>
#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/units.h>

namespace mpol::cli {

DiscGeometry GeometryOptions::geometry() const {
  return {.inclination = inclination * units::degree,
          .position_angle = position_angle * units::degree,
          .offset_east = offset_east,
          .offset_north = offset_north};
}

void declare(OptionSet& options, ImageFileOptions& image) {
  options.app().add_option("IMAGE", image.positional_image, "Image or cube in a FITS file")->type_name("FILE");
  options.path("--image", image.image, "The same as IMAGE", Record::result);
  declare_threads(options, image.threads);
}

void declare(OptionSet& options, ImageComputing& computing) {
  options.text("--device", computing.device, "DEVICE",
               "auto, cpu, cuda, cuda:N or least-loaded; several that share the channels: all, or a list such as cuda:0,cuda:1",
               Record::manner);
  options.choice("--dtype", computing.dtype, dtype_choices, "Precision", Record::result);
}

void declare(OptionSet& options, GeometryOptions& geometry) {
  declare_geometry(options, geometry.inclination, geometry.position_angle, geometry.offset_east, geometry.offset_north,
                   "Inclination of the disc, 0: face on");
}

void settle(ImageFileOptions& image) {
  if (!image.positional_image.empty()) image.image = image.positional_image;
  if (image.image.empty()) throw UsageError(error_text("IMAGE", "missing", "there must be an image to read", "name a FITS file"));
  image.image = std::filesystem::absolute(image.image).lexically_normal();
}

}  // namespace mpol::cli
