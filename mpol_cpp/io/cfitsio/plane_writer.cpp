#include <mpol_cpp/io/cfitsio/plane_writer.h>

namespace mpol::io {

void write_planes(FitsHandle& file, const torch::Tensor& cube, double scale, std::int64_t before) {
  LONGLONG first = 1 + before * cube.size(1) * cube.size(2);
  for (std::int64_t channel = 0; channel < cube.size(0); ++channel) {
    const auto plane = (cube.select(0, channel).to(torch::kCPU, torch::kFloat64) * scale).to(torch::kFloat32).contiguous();
    auto* values = const_cast<float*>(plane.const_data_ptr<float>());  // cfitsio only reads them
    fits_write_img(file.get(), TFLOAT, first, plane.numel(), values, file.status());
    file.check("writing the image");
    first += plane.numel();
  }
}

}  // namespace mpol::io
