#include <mpol_cpp/ops/proximal/gpu/gpu_cube_dual.h>

#include <algorithm>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/run_kernel.h>
#include <mpol_cpp/ops/proximal/cube_dual.h>
#include <mpol_cpp/ops/proximal/gpu/cube_dual_launch.h>
#include <mpol_cpp/ops/proximal/gpu/kernel_limits.h>

namespace mpol::ops {
namespace {

ImagePieces pieces_of(const Tensor& images) {
  return {images.size(-2) * images.size(-1), static_cast<std::int32_t>(images.size(1)),
          static_cast<std::int32_t>(images.size(0))};
}

/// Where a kernel's start takes longer than what blocks do in its stead: few pixels in all, and few blocks that say something of
/// turning.
CubeDualCut suitable_cut(const Tensor& images) {
  constexpr std::int64_t few_pixels = std::int64_t{1} << 20, few_blocks = 4096;
  const auto pieces = pieces_of(images);
  return images.numel() <= few_pixels && pieces.nchan * pieces.pieces() <= few_blocks ? CubeDualCut::small : CubeDualCut::large;
}

/// The steps of each part (CubePart) and image, of those of the images.
Tensor steps_of_parts(const Tensor& steps) {
  const auto nchan = steps.size(1);
  if (nchan == 1) return steps.expand({cube_parts, -1, -1}).contiguous();
  const auto following = at::cat({steps.narrow(1, 1, nchan - 1), steps.narrow(1, nchan - 1, 1)}, 1);
  return at::stack({steps, at::maximum(steps, following), steps.amax({1}, /*keepdim=*/true).expand_as(steps), steps})
      .contiguous();
}

}  // namespace

GpuCubeDual::GpuCubeDual(const Tensor& like, bool hann, CubeWeights weights, std::optional<CubeDualCut> cut, EmulatedOrder order)
    : cut_(cut.value_or(suitable_cut(like))), order_(order), hann_(hann) {
  const auto problems = like.size(0), nchan = like.size(1), npix = like.size(-1);
  constexpr auto pixels_of_block = std::int64_t{UsualCubeTile::width} * UsualCubeTile::height;  // the least that a kernel has
  check_images_of_kernels(like,
                          (npix + UsualCubeTile::width) * (npix + UsualCubeTile::height) / pixels_of_block * problems * nchan);
  weights.curvature.resize(weights.variation.size(), 0.0);
  std::int32_t planes = 2;
  const auto take = [&](bool has, std::int32_t count) {
    const auto first = planes;
    if (has) planes += count;
    return has ? first : -1;
  };
  plane_[variation_part] = 0;
  plane_[channels_part] = take(weights.has_channels(), 1);
  plane_[spectra_part] = take(weights.has_spectra(), 1);
  plane_[curvature_part] = take(weights.has_curvature(), 3);
  dual_ = at::zeros({planes, problems, nchan, npix, npix}, like.options());
  other_ = at::empty_like(dual_);
  seen_ = at::empty({problems, nchan, npix, npix}, like.options());
  if (cut_ == CubeDualCut::large) slope_ = at::empty_like(seen_);
  if (weights.has_spectra()) cuts_ = at::empty({problems, npix, npix}, like.options());
  std::vector<double> of_parts[cube_parts], climbs[cube_parts];
  for (std::int64_t i = 0; i < problems; ++i) {
    const CubeDualSteps own(weights, static_cast<std::size_t>(i));
    const double numbers[cube_parts] = {own.variation, own.channels, own.spectra, own.curvature};
    const double rises[cube_parts] = {own.variation_climb, own.channels_climb, own.spectra_climb, own.curvature_climb};
    for (int part = 0; part < cube_parts; ++part) of_parts[part].push_back(numbers[part]), climbs[part].push_back(rises[part]);
  }
  const auto table = [&](const auto& rows) {
    std::vector<Tensor> tensors;
    for (const auto& row : rows) tensors.push_back(at::tensor(row, torch::kFloat64));
    return at::stack(tensors).to(like.device());
  };
  weights_ = table(of_parts);
  climbs_ = table(climbs);
  if (weights.either_sign()) magnitudes_ = at::tensor(weights.magnitude, torch::kFloat64).to(like.device());
  const auto numbers = torch::TensorOptions(torch::kFloat64).device(like.device());
  turns_ = at::zeros({pieces_of(like).blocks()}, numbers);
  momentum_ = at::zeros({problems}, numbers);
}

void GpuCubeDual::apply(const Tensor& q, const Tensor& mask, const Tensor& steps, const DevicePasses& passes, const Tensor& x) {
  const torch::NoGradGuard no_grad;
  const c10::DeviceGuard guard(dual_.device());
  if (dual_.scalar_type() == torch::kFloat64) run<double>(q, mask, steps, passes, x);
  else run<float>(q, mask, steps, passes, x);
}

template <typename T>
void GpuCubeDual::run(const Tensor& q, const Tensor& mask, const Tensor& steps, const DevicePasses& passes, const Tensor& x) {
  const auto of_parts = steps_of_parts(steps);
  const auto problems = dual_.size(1);
  if (!t_.defined() || t_.size(0) < passes.most) t_ = at::empty({passes.most, problems}, momentum_.options());
  CubeDualArrays<T> arrays{};
  arrays.cut = pieces_of(dual_[0]);
  arrays.npix = static_cast<std::int32_t>(dual_.size(-1));
  arrays.hann = hann_;
  std::copy(std::begin(plane_), std::end(plane_), std::begin(arrays.plane));
  arrays.q = device_array<const T>(q);
  arrays.mask = device_array<const T>(mask);
  arrays.passes = device_array<const std::int64_t>(passes.counts);
  arrays.weights = device_array<const double>(weights_);
  arrays.climbs = device_array<const double>(climbs_);
  arrays.magnitudes = device_array<const double>(magnitudes_);
  arrays.steps = device_array<const double>(of_parts);
  arrays.even = device_array<const T>(dual_);
  arrays.odd = device_array<const T>(other_);
  arrays.slope = device_array<T>(slope_);
  arrays.seen = device_array<T>(seen_);
  arrays.cuts = device_array<T>(cuts_);
  arrays.block_turns = device_array<double>(turns_);
  arrays.t = device_array<double>(t_);
  arrays.momentum = device_array<double>(momentum_);
  arrays.x = device_array<T>(x);
  arrays.dual = device_array<T>(dual_);
  using Kernel = CubeDualKernel;
  const auto launch = [&](Kernel kernel) { run_kernel(CutCubeDualKernel{kernel, cut_}, arrays, dual_.device(), order_); };
  for (std::int64_t pass = 0; pass < passes.most; ++pass) {
    arrays.pass = pass;
    arrays.next = device_array<T>(pass % 2 == 0 ? other_ : dual_);
    if (cut_ == CubeDualCut::large) launch(Kernel::turn), launch(Kernel::gather);
    launch(Kernel::look);
    if (cuts_.defined()) launch(Kernel::norms);
    launch(Kernel::raise);
  }
  if (cut_ == CubeDualCut::large) launch(Kernel::last_gather);
  launch(Kernel::finish);
}

}  // namespace mpol::ops
