#include <mpol_cpp/ops/proximal/image_vectors.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>

#include <ATen/Dispatch.h>

#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/ops/proximal/image_differences.h>

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

/// What the pieces of each image come to, in their order.
template <typename Sums>
std::vector<Sums> joined(const Pieces& pieces, const std::vector<Sums>& parts) {
  std::vector<Sums> sums(static_cast<std::size_t>(pieces.images_count));
  for (std::int64_t piece = 0; piece < pieces.count(); ++piece)
    sums[static_cast<std::size_t>(pieces.image(piece))] += parts[static_cast<std::size_t>(piece)];
  return sums;
}

/// The sum of each image, in float64.
std::vector<double> sums_of_images(const Tensor& images) {
  const auto sums = images.sum({-2, -1}, /*keepdim=*/false, torch::kFloat64).to(torch::kCPU).contiguous();
  return {sums.const_data_ptr<double>(), sums.const_data_ptr<double>() + sums.numel()};
}

void extrapolate_by_tensors(const Tensor& y, const Tensor& gradient, const std::vector<ExtrapolationFactors>& factors, Tensor& w,
                            Tensor& z) {
  const auto column = [&](double ExtrapolationFactors::*factor) {
    std::vector<double> values;
    values.reserve(factors.size());
    for (const auto& own : factors) values.push_back(own.*factor);
    return spread(values, y);
  };
  using Factors = ExtrapolationFactors;
  const auto down = y - gradient * column(&Factors::slope);
  const auto ahead = down + (down - w) * column(&Factors::w_factor) + (down - y) * column(&Factors::y_factor) +
                     (z - y) * column(&Factors::z_factor);
  w.copy_(down);
  z.copy_(ahead);
}

std::vector<PointSums> compare_by_tensors(const Tensor& y, const Tensor& gradient, const Tensor& next,
                                          const Tensor& next_gradient) {
  const auto change = next - y;
  const auto along = sums_of_images(change * (next_gradient + gradient)),
             bends = sums_of_images(change * (next_gradient - gradient)), lengths = sums_of_images(change * change);
  std::vector<PointSums> sums(along.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = {along[i], bends[i], lengths[i]};
  return sums;
}

std::vector<PixelSums> pixel_sums_by_tensors(const Tensor& images, const LengthEpsilons& epsilons) {
  const auto pixels = sums_of_images(images);
  std::vector<PixelSums> sums(pixels.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].pixels = pixels[i];
  const auto add_lengths = [&](const Tensor& squares, double epsilon, double PixelSums::*sum) {
    const auto lengths = sums_of_images((squares + epsilon).sqrt());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].*sum = lengths[i];
  };
  const auto npix = images.size(-1);
  if (epsilons.variation && npix > 1) {
    const auto at = [&](std::int64_t row, std::int64_t column) {
      return images.narrow(-2, row, npix - 1).narrow(-1, column, npix - 1);
    };
    add_lengths((at(1, 0) - at(0, 0)).square() + (at(0, 1) - at(0, 0)).square(), *epsilons.variation, &PixelSums::variation);
  }
  if (epsilons.curvature && npix > 2) {
    const auto bends = second_differences(images, curved_block(images)).square().sum(0);
    add_lengths(bends.narrow(-2, 1, npix - 2).narrow(-1, 1, npix - 2), *epsilons.curvature, &PixelSums::curvature);
  }
  return sums;
}

}  // namespace

void extrapolate(const Tensor& y, const Tensor& gradient, const std::vector<ExtrapolationFactors>& factors, Tensor& w,
                 Tensor& z) {
  if (!y.is_cpu()) return extrapolate_by_tensors(y, gradient, factors, w, z);
  const Pieces pieces(y);
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "extrapolate", [&] {
    const auto kernels = proximal_kernels<scalar_t>(selected_isa());
    const auto *from_y = y.const_data_ptr<scalar_t>(), *from_gradient = gradient.const_data_ptr<scalar_t>();
    auto *own_w = w.mutable_data_ptr<scalar_t>(), *own_z = z.mutable_data_ptr<scalar_t>();
    each_piece(pieces, [&](std::int64_t piece) {
      const auto at = pieces.begin(piece);
      kernels.extrapolate(from_y + at, from_gradient + at, factors[static_cast<std::size_t>(pieces.image(piece))], own_w + at,
                          own_z + at, pieces.pixels(piece));
    });
  });
}

void scale_and_shift(Tensor& images, const std::vector<double>& factors, const std::vector<double>& shifts) {
  const Pieces pieces(images);
  AT_DISPATCH_FLOATING_TYPES(images.scalar_type(), "scale_and_shift", [&] {
    const auto kernels = proximal_kernels<scalar_t>(selected_isa());
    auto* values = images.mutable_data_ptr<scalar_t>();
    each_piece(pieces, [&](std::int64_t piece) {
      const auto image = static_cast<std::size_t>(pieces.image(piece));
      kernels.scale(values + pieces.begin(piece), factors[image], shifts[image], pieces.pixels(piece));
    });
  });
}

void copy_images(const Tensor& from, Tensor& to) {
  if (!from.is_cpu() || !from.is_contiguous() || !to.is_contiguous() || from.scalar_type() != to.scalar_type()) {
    to.copy_(from);
    return;
  }
  const Pieces pieces(from);
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "copy_images", [&] {
    const auto* values = from.const_data_ptr<scalar_t>();
    auto* copies = to.mutable_data_ptr<scalar_t>();
    each_piece(pieces, [&](std::int64_t piece) {
      const auto at = pieces.begin(piece);
      std::copy_n(values + at, pieces.pixels(piece), copies + at);
    });
  });
}

std::vector<PointSums> compare_points(const Tensor& y, const Tensor& gradient, const Tensor& next, const Tensor& next_gradient) {
  if (!y.is_cpu()) return compare_by_tensors(y, gradient, next, next_gradient);
  const Pieces pieces(y);
  std::vector<PointSums> parts(static_cast<std::size_t>(pieces.count()));
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
  return joined(pieces, parts);
}

double sum_of_pixels(const Tensor& images) {
  const Pieces pieces(images);
  std::vector<double> parts(static_cast<std::size_t>(pieces.count()));
  AT_DISPATCH_FLOATING_TYPES(images.scalar_type(), "sum_of_pixels", [&] {
    const auto kernels = proximal_kernels<scalar_t>(selected_isa());
    const auto* values = images.const_data_ptr<scalar_t>();
    each_piece(pieces, [&](std::int64_t piece) {
      parts[static_cast<std::size_t>(piece)] = kernels.sum(values + pieces.begin(piece), pieces.pixels(piece));
    });
  });
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

std::vector<PixelSums> pixel_sums(const Tensor& images, const LengthEpsilons& epsilons) {
  if (!images.is_cpu()) return pixel_sums_by_tensors(images, epsilons);
  const Pieces pieces(images);
  std::vector<PixelSums> parts(static_cast<std::size_t>(pieces.count()));
  AT_DISPATCH_FLOATING_TYPES(images.scalar_type(), "pixel_sums", [&] {
    const auto kernels = proximal_kernels<scalar_t>(selected_isa());
    const auto* from = images.const_data_ptr<scalar_t>();
    const auto n = pieces.npix;
    each_piece(pieces, [&](std::int64_t piece) {
      auto& sum = parts[static_cast<std::size_t>(piece)];
      for (auto row = pieces.first_row(piece); row < pieces.end_row(piece); ++row) {
        const auto* here = from + (pieces.image(piece) * n + row) * n;
        sum.pixels += kernels.sum(here, n);
        if (row + 1 == n) continue;
        if (epsilons.variation) sum.variation += kernels.variation(here, here + n, *epsilons.variation, n);
        if (epsilons.curvature && row > 0) sum.curvature += kernels.curvature(here - n, here, here + n, *epsilons.curvature, n);
      }
    });
  });
  return joined(pieces, parts);
}

}  // namespace mpol::ops
