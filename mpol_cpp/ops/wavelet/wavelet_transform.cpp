#include <mpol_cpp/ops/wavelet/wavelet_transform.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/Dispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/roll.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <torch/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/ops/simd/flush_tiny.h>
#include <mpol_cpp/ops/wavelet/wavelet_gpu_launch.h>
#include <mpol_cpp/ops/wavelet/wavelet_walk.h>
#include <mpol_cpp/ops/wavelet/wavelets_on_gpu.h>

namespace mpol::ops {
namespace {

using Moments = std::vector<std::int64_t>;

/// (2 n, 2): what low and high frequencies take of each neighbor.
Tensor filters_of(std::int64_t moments, const Tensor& like) {
  const auto& filters = daubechies_filters(moments);
  return at::stack({at::tensor(filters.low, torch::kFloat64), at::tensor(filters.high, torch::kFloat64)}, 1)
      .to(like.device(), like.scalar_type());
}

/// One level along the last dimension: (…, n) to (…, n), low frequencies in the first half.
Tensor split(const Tensor& x, const Tensor& filters) {
  const auto pairs = x.unflatten(-1, {x.size(-1) / 2, 2});
  std::vector<Tensor> neighbors;
  for (std::int64_t k = 0; k < filters.size(0) / 2; ++k) neighbors.push_back(k == 0 ? pairs : at::roll(pairs, {-k}, {-2}));
  return at::cat(neighbors, -1).matmul(filters).transpose(-2, -1).flatten(-2, -1);
}

/// The adjoint, and inverse, of split().
Tensor join(const Tensor& y, const Tensor& filters) {
  const auto taken = y.unflatten(-1, {2, y.size(-1) / 2}).transpose(-2, -1).matmul(filters.transpose(0, 1));
  Tensor pairs;
  for (std::int64_t k = 0; k < filters.size(0) / 2; ++k) {
    const auto part = taken.narrow(-1, 2 * k, 2);
    pairs = k == 0 ? part : pairs + at::roll(part, {k}, {-2});
  }
  return pairs.flatten(-2, -1);
}

/// The quarter of low frequencies of an image at a level.
Tensor quarter(const Tensor& image, std::int64_t level) {
  return image.narrow(-2, 0, image.size(-2) >> level).narrow(-1, 0, image.size(-1) >> level);
}

/// Calls task(walk, transform, image) for each transform of each image, all threads together.
template <typename T, typename Task>
void each_walk(const Tensor& images, std::int64_t count, const Moments& moments, std::int64_t levels, const Task& task) {
  const auto rows = images.size(-2), columns = images.size(-1);
  for (const auto n : moments) daubechies_filters(n);  // refused here, not within a task
  const auto transforms = static_cast<std::int64_t>(moments.size());
  const auto own = [&](std::int64_t i, std::int64_t) {
    const FlushTiny flush;
    const auto transform = transforms - 1 - i / count;  // the longest filters first
    WaveletWalk<T> walk(daubechies_filters(moments[static_cast<std::size_t>(transform)]), levels, rows, columns);
    task(walk, transform, i % count);
  };
  share_tasks(transforms * count, 1, own);
}

std::int64_t images_in(const Tensor& images) { return images.numel() / (images.size(-2) * images.size(-1)); }

Tensor analyzed_on_cpu(const Tensor& images, const Moments& moments, std::int64_t levels) {
  const auto x = images.contiguous();
  auto shape = x.sizes().vec();
  shape.insert(shape.begin(), static_cast<std::int64_t>(moments.size()));
  auto result = at::empty(shape, x.options());
  const auto count = images_in(x), pixels = x.size(-2) * x.size(-1);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "mpol::wavelet_analysis", [&] {
    const auto* from = x.const_data_ptr<scalar_t>();
    auto* to = result.mutable_data_ptr<scalar_t>();
    each_walk<scalar_t>(x, count, moments, levels, [&](auto& walk, std::int64_t transform, std::int64_t image) {
      walk.analyze(from + image * pixels, to + (transform * count + image) * pixels);
    });
  });
  return result;
}

Tensor synthesized_on_cpu(const Tensor& coefficients, const Moments& moments, std::int64_t levels) {
  const auto y = coefficients.contiguous();
  auto parts = at::empty(y.sizes(), y.options());
  const auto count = images_in(y[0]), pixels = y.size(-2) * y.size(-1);
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "mpol::wavelet_synthesis", [&] {
    const auto* from = y.const_data_ptr<scalar_t>();
    auto* to = parts.mutable_data_ptr<scalar_t>();
    each_walk<scalar_t>(y, count, moments, levels, [&](auto& walk, std::int64_t transform, std::int64_t image) {
      const auto at = (transform * count + image) * pixels;
      walk.synthesize(from + at, to + at);
    });
  });
  auto sum = parts[0].clone();
  for (std::int64_t i = 1; i < parts.size(0); ++i) sum.add_(parts[i]);
  return sum;
}

/// Whether a GPU's kernels take these.
bool has_kernels(const Tensor& images, const Moments& moments, std::int64_t levels) {
  return (images.scalar_type() == torch::kFloat32 || images.scalar_type() == torch::kFloat64) && levels > 0 &&
         moments.size() <= static_cast<std::size_t>(most_transforms);
}

/// Each of the two is the other's adjoint.
struct Analysis : torch::autograd::Function<Analysis> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& images, const Moments& moments,
                        std::int64_t levels) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    context->saved_data["moments"] = moments;
    context->saved_data["levels"] = levels;
    if (images.is_cuda() && has_kernels(images, moments, levels)) return wavelet_analysis_on_gpu(images, moments, levels);
    return images.is_cpu() ? analyzed_on_cpu(images, moments, levels) : wavelet_analysis_by_tensors(images, moments, levels);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& slopes) {
    const auto moments = context->saved_data["moments"].toIntVector();
    return {wavelet_synthesis(slopes[0], moments, context->saved_data["levels"].toInt()), {}, {}};
  }
};

struct Synthesis : torch::autograd::Function<Synthesis> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& coefficients, const Moments& moments,
                        std::int64_t levels) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    context->saved_data["moments"] = moments;
    context->saved_data["levels"] = levels;
    if (coefficients.is_cuda() && has_kernels(coefficients, moments, levels))
      return wavelet_synthesis_on_gpu(coefficients, moments, levels);
    return coefficients.is_cpu() ? synthesized_on_cpu(coefficients, moments, levels)
                                 : wavelet_synthesis_by_tensors(coefficients, moments, levels);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& slopes) {
    const auto moments = context->saved_data["moments"].toIntVector();
    return {wavelet_analysis(slopes[0], moments, context->saved_data["levels"].toInt()), {}, {}};
  }
};

void check_halves(const Tensor& images, std::int64_t levels) {
  const auto block = std::int64_t{1} << levels;
  if (images.dim() >= 2 && images.size(-1) % block == 0 && images.size(-2) % block == 0) return;
  throw ShapeError(
      fmt::format("an image {} cannot be split in halves {} times: rows and columns must be multiples of {}, or take fewer "
                  "levels",
                  images.sizes().vec(), levels, block));
}

}  // namespace

std::int64_t wavelet_levels(std::int64_t npix, std::int64_t most) {
  std::int64_t levels = 0;
  while (levels < most && npix % (std::int64_t{2} << levels) == 0) ++levels;
  return levels;
}

Tensor wavelet_analysis_by_tensors(const Tensor& images, const Moments& moments, std::int64_t levels) {
  std::vector<Tensor> all;
  for (const auto n : moments) {
    const auto filters = filters_of(n, images);
    auto y = images.clone(at::MemoryFormat::Contiguous);
    for (std::int64_t level = 0; level < levels; ++level) {
      auto low = quarter(y, level);
      low.copy_(split(split(low, filters).transpose(-2, -1), filters).transpose(-2, -1));
    }
    all.push_back(std::move(y));
  }
  return at::stack(all);
}

Tensor wavelet_synthesis_by_tensors(const Tensor& coefficients, const Moments& moments, std::int64_t levels) {
  Tensor sum;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const auto filters = filters_of(moments[i], coefficients);
    auto x = coefficients[static_cast<std::int64_t>(i)].clone(at::MemoryFormat::Contiguous);
    for (std::int64_t level = levels; level-- > 0;) {
      auto low = quarter(x, level);
      low.copy_(join(join(low.transpose(-2, -1), filters).transpose(-2, -1), filters));
    }
    sum = i == 0 ? x : sum + x;
  }
  return sum;
}

Tensor wavelet_analysis(const Tensor& images, const Moments& moments, std::int64_t levels) {
  check_halves(images, levels);
  return Analysis::apply(images, moments, levels);
}

Tensor wavelet_synthesis(const Tensor& coefficients, const Moments& moments, std::int64_t levels) {
  check_halves(coefficients, levels);
  return Synthesis::apply(coefficients, moments, levels);
}

}  // namespace mpol::ops
