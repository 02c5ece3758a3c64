#include <mpol_cpp/ops/proximal/image_differences.h>

#include <cmath>
#include <cstdlib>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

namespace mpol::ops {

Tensor counted_block(const Tensor& like) {
  const auto n = like.size(-1);
  auto counted = at::ones({n, n}, like.options());
  counted.select(0, n - 1).zero_();
  counted.select(1, n - 1).zero_();
  return counted;
}

Tensor differences(const Tensor& images, const Tensor& counted) {
  const auto n = images.size(-1);
  const auto next_row = at::constant_pad_nd(images.narrow(-2, 1, n - 1) - images.narrow(-2, 0, n - 1), {0, 0, 0, 1});
  const auto next_column = at::constant_pad_nd(images.narrow(-1, 1, n - 1) - images.narrow(-1, 0, n - 1), {0, 1});
  return at::stack({next_row, next_column}) * counted;
}

Tensor adjoint_differences(const Tensor& dual) {
  const auto n = dual.size(-1);
  const auto rows = dual[0], columns = dual[1];
  return at::constant_pad_nd(rows.narrow(-2, 0, n - 1), {0, 0, 1, 0}) - rows +
         at::constant_pad_nd(columns.narrow(-1, 0, n - 1), {1, 0}) - columns;
}

namespace {

/// Images moved by whole pixels, with zeros coming in: the value at (row + rows, column + columns).
Tensor moved(const Tensor& images, std::int64_t rows, std::int64_t columns) {
  const auto n = images.size(-1);
  const auto one_way = [n](const Tensor& of, std::int64_t dimension, std::int64_t by) {
    if (by == 0) return of;
    const auto kept = of.narrow(dimension, by > 0 ? by : 0, n - std::abs(by));
    const std::int64_t before = by < 0 ? -by : 0, after = by > 0 ? by : 0;
    return dimension == -1 ? at::constant_pad_nd(kept, {before, after}) : at::constant_pad_nd(kept, {0, 0, before, after});
  };
  return one_way(one_way(images, -2, rows), -1, columns);
}

}  // namespace

Tensor curved_block(const Tensor& like) {
  const auto n = like.size(-1);
  auto counted = counted_block(like);
  if (n > 0) counted.select(0, 0).zero_(), counted.select(1, 0).zero_();
  return counted;
}

Tensor second_differences(const Tensor& images, const Tensor& counted) {
  const auto right = moved(images, 0, 1), above = moved(images, 1, 0);
  const auto rows = above - 2 * images + moved(images, -1, 0), columns = right - 2 * images + moved(images, 0, -1);
  const auto mixed = (moved(images, 1, 1) - above - right + images) * std::sqrt(2.0);
  return at::stack({rows, columns, mixed}) * counted;
}

Tensor adjoint_second_differences(const Tensor& dual) {
  const auto rows = dual[0], columns = dual[1], mixed = dual[2];
  return moved(rows, -1, 0) - 2 * rows + moved(rows, 1, 0) + moved(columns, 0, -1) - 2 * columns + moved(columns, 0, 1) +
         (moved(mixed, -1, -1) - moved(mixed, -1, 0) - moved(mixed, 0, -1) + mixed) * std::sqrt(2.0);
}

Tensor channel_differences(const Tensor& cubes) {
  const auto nchan = cubes.size(-3);
  return at::constant_pad_nd(cubes.narrow(-3, 1, nchan - 1) - cubes.narrow(-3, 0, nchan - 1), {0, 0, 0, 0, 0, 1});
}

Tensor adjoint_channel_differences(const Tensor& dual) {
  return at::constant_pad_nd(dual.narrow(-3, 0, dual.size(-3) - 1), {0, 0, 0, 0, 1, 0}) - dual;
}

Tensor cut_pixels(const Tensor& images, const Tensor& thresholds) {
  if (!thresholds.defined()) return images.clamp_min(0);
  const auto own = thresholds.to(images.scalar_type());
  return images - images.clamp_min(-own).minimum(own);
}

Tensor spread(const std::vector<double>& values, const Tensor& images) {
  return at::tensor(values, torch::kFloat64).to(images.device(), images.scalar_type()).view({images.size(0), -1, 1, 1});
}

}  // namespace mpol::ops
