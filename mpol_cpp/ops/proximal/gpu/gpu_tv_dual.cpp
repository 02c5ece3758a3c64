#include <mpol_cpp/ops/proximal/gpu/gpu_tv_dual.h>

#include <algorithm>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/proximal/gpu/kernel_limits.h>
#include <mpol_cpp/ops/proximal/gpu/tv_dual_launch.h>

namespace mpol::ops {
namespace {

/// Blocks below which high tiles would leave processors of a GPU idle.
constexpr std::int64_t enough_blocks = 512;

template <typename Tile>
std::int64_t tiles_of(std::int64_t npix) {
  return ((npix + Tile::width - 1) / Tile::width) * ((npix + Tile::height - 1) / Tile::height);
}

std::int64_t tiles_of(TvDualCut cut, std::int64_t npix) {
  if (cut == TvDualCut::odd) return tiles_of<OddTvTile>(npix);
  return cut == TvDualCut::high ? tiles_of<HighTvTile>(npix) : tiles_of<LowTvTile>(npix);
}

TvDualCut suitable_cut(std::int64_t images, std::int64_t npix) {
  return images * tiles_of<HighTvTile>(npix) >= enough_blocks ? TvDualCut::high : TvDualCut::low;
}

}  // namespace

GpuTvDual::GpuTvDual(const Tensor& like, bool hann, std::optional<TvDualCut> cut, EmulatedOrder order)
    : cut_(cut.value_or(suitable_cut(like.size(0) * like.size(1), like.size(-1)))), order_(order), hann_(hann) {
  const auto problems = like.size(0), nchan = like.size(1), npix = like.size(-1);
  const auto tiles = tiles_of(cut_, npix);
  check_images_of_kernels(like, tiles * problems * nchan);
  dual_ = at::zeros({2, problems, nchan, npix, npix}, like.options());
  for (auto& each : ring_) each = at::empty_like(dual_);
  const auto numbers = torch::TensorOptions(torch::kFloat64).device(like.device());
  block_turns_ = at::zeros({2, problems, nchan * tiles}, numbers);
  if (nchan * tiles > most_turns) group_turns_ = at::zeros({2, problems, turn_groups}, numbers);
}

void GpuTvDual::apply(const Tensor& q, const Tensor& mask, const Tensor& weights, const DevicePasses& passes, const Tensor& x,
                      const Tensor& thresholds) {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(dual_.device());
  if (dual_.scalar_type() == torch::kFloat64) run<double>(q, mask, weights, passes, x, thresholds);
  else run<float>(q, mask, weights, passes, x, thresholds);
}

template <typename T>
void GpuTvDual::run(const Tensor& q, const Tensor& mask, const Tensor& weights, const DevicePasses& passes, const Tensor& x,
                    const Tensor& thresholds) {
  const auto problems = dual_.size(1);
  if (!t_.defined() || t_.size(0) < passes.most) t_ = at::empty({passes.most, problems}, block_turns_.options());
  TvDualArrays<T> arrays{};
  arrays.npix = static_cast<std::int32_t>(dual_.size(-1));
  arrays.nchan = static_cast<std::int32_t>(dual_.size(2));
  arrays.problems = static_cast<std::int32_t>(problems);
  arrays.hann = hann_;
  arrays.q = device_array<const T>(q);
  arrays.mask = device_array<const T>(mask);
  arrays.weights = device_array<const double>(weights);
  arrays.thresholds = device_array<const double>(thresholds);
  arrays.passes = device_array<const std::int64_t>(passes.counts);
  arrays.t = device_array<double>(t_);
  arrays.first = device_array<const T>(ring_[0]);
  arrays.second = device_array<const T>(ring_[1]);
  arrays.third = device_array<const T>(ring_[2]);
  arrays.x = device_array<T>(x);
  arrays.dual = device_array<T>(dual_);
  const auto launch = [&](TvDualKernel kernel) { run_kernel(CutTvDualKernel{kernel, cut_}, arrays, dual_.device(), order_); };
  const auto raised = [&](std::int64_t pass) -> const Tensor& { return pass < 0 ? dual_ : ring_[pass % 3]; };
  for (std::int64_t pass = 0; pass < passes.most; ++pass) {
    arrays.pass = pass;
    arrays.now = device_array<const T>(raised(pass - 1));
    arrays.before = device_array<const T>(raised(std::max<std::int64_t>(pass - 2, -1)));
    arrays.next = device_array<T>(raised(pass));
    const auto& turns = group_turns_.defined() ? group_turns_ : block_turns_;
    arrays.turns = device_array<const double>(turns[(pass + 1) % 2]);
    arrays.block_turns = device_array<double>(block_turns_[pass % 2]);
    launch(TvDualKernel::raise);
    if (!group_turns_.defined() || pass + 1 == passes.most) continue;
    arrays.group_turns = device_array<double>(group_turns_[pass % 2]);
    launch(TvDualKernel::gather);
  }
  launch(TvDualKernel::finish);
}

}  // namespace mpol::ops
