#include <mpol_cpp/ops/proximal/gpu/kernel_limits.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::ops {

void check_images_of_kernels(const torch::Tensor& like, std::int64_t blocks) {
  constexpr std::int64_t most_pixels = 65534, most_blocks = 0x7fffffff;
  if (like.scalar_type() != torch::kFloat32 && like.scalar_type() != torch::kFloat64) {
    throw ValueError(fmt::format("dual steps are computed in float32 or float64, not in {}", c10::toString(like.scalar_type())));
  }
  const auto npix = like.size(-1);
  if (npix > most_pixels || blocks > most_blocks) {
    throw ValueError(fmt::format("{} images of {} x {} pixels: a GPU's dual steps count up to {} pixels a side and {} blocks",
                                 like.size(0) * like.size(1), npix, npix, most_pixels, most_blocks));
  }
}

}  // namespace mpol::ops
