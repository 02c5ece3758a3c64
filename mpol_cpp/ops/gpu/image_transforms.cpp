#include <mpol_cpp/ops/gpu/image_transforms.h>

#include <limits>

#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>

namespace mpol::ops {
namespace {

class AtenImageTransforms : public ImageTransforms {
 public:
  void forward(const Tensor& images, const Tensor& half_planes) override {
    half_planes.copy_(at::_fft_r2c(images, {1, 2}, no_factor, /*onesided=*/true));
  }
  void inverse(const Tensor& half_planes, const Tensor& images) override {
    images.copy_(at::_fft_c2r(half_planes, {1, 2}, no_factor, images.size(2)));
    half_planes.fill_(std::numeric_limits<double>::quiet_NaN());
  }

 private:
  static constexpr std::int64_t no_factor = 0;
};

}  // namespace

std::unique_ptr<ImageTransforms> aten_image_transforms() { return std::make_unique<AtenImageTransforms>(); }

}  // namespace mpol::ops
