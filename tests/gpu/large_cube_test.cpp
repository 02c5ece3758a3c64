// Cubes of more elements than 32 bits count. Run by hand or by scripts/gpu_check; without a GPU they fail.
#include "catch.h"

#include <cmath>

#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>

#include <mpol_cpp/device/load.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_pipeline.h>

#include "compare.h"
#include "required_gpu.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("every image of a cube of more than 2^31 pixels is reached on a GPU", "[gpu][fused][large]") {
  const auto device = required_gpu();
  constexpr std::int64_t npix = 4096, nchan = 129, half_plane = npix * (npix / 2 + 1);
  static_assert(npix * npix * nchan > (std::int64_t{1} << 31));
  constexpr std::int64_t needed_bytes = std::int64_t{72} << 30;
  const auto free_bytes = memory_info(device).free_bytes;
  if (free_bytes < needed_bytes) {
    WARN("LEFT OUT: " << free_bytes << " bytes are free on the GPU, " << needed_bytes << " are needed");
    return;
  }
  // All channels are the same problem, so that the last one, beyond 2^31, is known from one alone.
  const auto cells = uniform({500}, torch::kFloat64, 1).mul(static_cast<double>(half_plane)).to(torch::kInt64);
  const auto data = normal({500}, torch::kComplexDouble, 2), weights = uniform({500}, torch::kFloat64, 3) + 0.5;
  const auto image = normal({1, 1, npix, npix}, torch::kFloat32, 4).to(device);
  const auto evaluated = [&](std::int64_t channels) {
    ops::FusedGpuSettings settings;
    settings.npix = npix, settings.nchan = channels, settings.device = device;
    settings.terms.weight(TermKind::tv_image) = 1e-3, settings.terms.weight(TermKind::sparsity) = 1e-3;
    settings.columns = {TermKind::tv_image, TermKind::sparsity};
    const auto first = at::arange(channels, torch::kInt64).mul(half_plane).unsqueeze(1);
    ops::FusedGpuPipeline pipeline(settings, (first + cells).flatten(), data.repeat({channels}), weights.repeat({channels}));
    const auto base = image.expand({1, channels, npix, npix}).contiguous();
    auto gradient = at::full_like(base, std::nan(""));
    pipeline.make_room(1);
    pipeline.enqueue_gradient(base, gradient);
    return std::pair(pipeline.next_losses().losses.cpu(), gradient.select(1, channels - 1).cpu());
  };
  const auto [losses, gradient] = evaluated(nchan);
  const auto [losses_of_one, gradient_of_one] = evaluated(1);
  CHECK(relative_error(losses, losses_of_one * static_cast<double>(nchan)) < 1e-5);
  CHECK(relative_error(gradient, gradient_of_one) < 1e-5);
}
