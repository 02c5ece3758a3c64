#include <mpol_cpp/ops/proximal/image_vectors.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::ops {
namespace {

constexpr std::int64_t rows_per_task = 32;

/// Rows of images in fixed pieces.
struct Pieces {
  explicit Pieces(const Tensor& images)
      : npix(images.size(-1)),
        images_count(images.numel() / (npix * npix)),
        per_image((npix + rows_per_task - 1) / rows_per_task) {}

  std::int64_t count() const { return images_count * per_image; }
  std::int64_t image(std::int64_t piece) const { return piece / per_image; }
  std::int64_t first_row(std::int64_t piece) const { return piece % per_image * rows_per_task; }
  std::int64_t end_row(std::int64_t piece) const { return std::min(npix, first_row(piece) + rows_per_task); }
  std::int64_t begin(std::int64_t piece) const { return (image(piece) * npix + first_row(piece)) * npix; }
  std::int64_t pixels(std::int64_t piece) const { return (end_row(piece) - first_row(piece)) * npix; }

  std::int64_t npix, images_count, per_image;
};

template <typename Task>
void each_piece(const Pieces& pieces, const Task& task) {
  share_tasks(
      pieces.count(), 1, [&](std::int64_t piece, std::int64_t) { task(piece); }, WorkerPool::Order::near);
}

Tensor spread(const std::vector<double>& values, const Tensor& images) {
  return at::tensor(values, torch::kFloat64).to(images.device(), images.scalar_type()).view({images.size(0), -1, 1, 1});
}

/// Of each image, in float64.
std::vector<double> image_sums(const Tensor& images) {
  const auto sums = images.sum({-2, -1}, /*keepdim=*/false, torch::kFloat64).to(torch::kCPU).contiguous();
  return {sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + sums.numel()};
}

Extrapolated extrapolate_by_tensors(const Tensor& y, const Tensor& gradient, const Tensor& w, const Tensor& z,
                                    const std::vector<ExtrapolationFactors>& factors) {
  const auto column = [&](double ExtrapolationFactors::*factor) {
    std::vector<double> values;
    values.reserve(factors.size());
    for (const auto& own : factors) values.push_back(own.*factor);
    return spread(values, y);
  };
  using Factors = ExtrapolationFactors;
  auto down = y - gradient * column(&Factors::slope);
  auto ahead =
      down + (down - w) * column(&Factors::of_w) + (down - y) * column(&Factors::of_y) + (z - y) * column(&Factors::of_z);
  return {std::move(down), std::move(ahead)};
}

std::vector<PointSums> compare_by_tensors(const Tensor& y, const Tensor& gradient, const Tensor& next,
                                          const Tensor& next_gradient) {
  const auto change = next - y;
  const auto along = image_sums(change * (next_gradient + gradient)), bends = image_sums(change * (next_gradient - gradient)),
             lengths = image_sums(change * change);
  std::vector<PointSums> sums(along.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = {along[i], bends[i], lengths[i]};
  return sums;
}

std::vector<double> variations_by_tensors(const Tensor& images, double epsilon) {
  const auto inner = images.size(-1) - 1;
  const auto corner = images.narrow(-2, 0, inner).narrow(-1, 0, inner);
  const auto across = images.narrow(-2, 1, inner).narrow(-1, 0, inner) - corner,
             along = images.narrow(-2, 0, inner).narrow(-1, 1, inner) - corner;
  return image_sums((across.square() + along.square() + epsilon).sqrt());
}

}  // namespace

Extrapolated extrapolate(const Tensor& y, const Tensor& gradient, const Tensor& w, const Tensor& z,
                         const std::vector<ExtrapolationFactors>& factors) {
  if (!y.is_cpu()) return extrapolate_by_tensors(y, gradient, w, z, factors);
  Extrapolated out{at::empty_like(y), at::empty_like(y)};
  const Pieces pieces(y);
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "extrapolate", [&] {
    const auto kernels = proximal_kernels<scalar_t>(selected_isa());
    const auto *from_y = y.const_data_ptr<scalar_t>(), *from_gradient = gradient.const_data_ptr<scalar_t>(),
               *from_w = w.const_data_ptr<scalar_t>(), *from_z = z.const_data_ptr<scalar_t>();
    auto *to_w = out.w.mutable_data_ptr<scalar_t>(), *to_z = out.z.mutable_data_ptr<scalar_t>();
    each_piece(pieces, [&](std::int64_t piece) {
      const auto at = pieces.begin(piece);
      kernels.extrapolate(from_y + at, from_gradient + at, from_w + at, from_z + at,
                          factors[static_cast<std::size_t>(pieces.image(piece))], to_w + at, to_z + at, pieces.pixels(piece));
    });
  });
  return out;
}

std::vector<PointSums> compare_points(const Tensor& y, const Tensor& gradient, const Tensor& next, const Tensor& next_gradient) {
  if (!y.is_cpu()) return compare_by_tensors(y, gradient, next, next_gradient);
  const Pieces pieces(y);
  std::vector<PointSums> parts(static_cast<std::size_t>(pieces.count())), sums(static_cast<std::size_t>(pieces.images_count));
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "compare_points", [&] {
    const auto kernels = proximal_kernels<scalar_t>(selected_isa());
    const auto *from_y = y.const_data_ptr<scalar_t>(), *from_gradient = gradient.const_data_ptr<scalar_t>(),
               *from_next = next.const_data_ptr<scalar_t>(), *from_slope = next_gradient.const_data_ptr<scalar_t>();
    each_piece(pieces, [&](std::int64_t piece) {
      const auto at = pieces.begin(piece);
      parts[static_cast<std::size_t>(piece)] =
          kernels.compare(from_y + at, from_gradient + at, from_next + at, from_slope + at, pieces.pixels(piece));
    });
  });
  for (std::int64_t piece = 0; piece < pieces.count(); ++piece) {
    auto& sum = sums[static_cast<std::size_t>(pieces.image(piece))];
    const auto& part = parts[static_cast<std::size_t>(piece)];
    sum.along += part.along;
    sum.bends += part.bends;
    sum.lengths += part.lengths;
  }
  return sums;
}

std::vector<double> variations(const Tensor& images, double epsilon) {
  if (!images.is_cpu()) return variations_by_tensors(images, epsilon);
  const Pieces pieces(images);
  std::vector<double> parts(static_cast<std::size_t>(pieces.count())), sums(static_cast<std::size_t>(pieces.images_count));
  AT_DISPATCH_FLOATING_TYPES(images.scalar_type(), "variations", [&] {
    const auto kernels = proximal_kernels<scalar_t>(selected_isa());
    const auto* from = images.const_data_ptr<scalar_t>();
    each_piece(pieces, [&](std::int64_t piece) {
      double sum = 0;
      const auto end = std::min(pieces.end_row(piece), pieces.npix - 1);
      for (auto row = pieces.first_row(piece); row < end; ++row) {
        const auto* here = from + (pieces.image(piece) * pieces.npix + row) * pieces.npix;
        sum += kernels.variation(here, here + pieces.npix, epsilon, pieces.npix);
      }
      parts[static_cast<std::size_t>(piece)] = sum;
    });
  });
  for (std::int64_t piece = 0; piece < pieces.count(); ++piece) {
    sums[static_cast<std::size_t>(pieces.image(piece))] += parts[static_cast<std::size_t>(piece)];
  }
  return sums;
}

}  // namespace mpol::ops
