#include <mpol_cpp/ops/proximal/image_differences.h>

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

Tensor channel_differences(const Tensor& cubes) {
  const auto nchan = cubes.size(-3);
  return at::constant_pad_nd(cubes.narrow(-3, 1, nchan - 1) - cubes.narrow(-3, 0, nchan - 1), {0, 0, 0, 0, 0, 1});
}

Tensor adjoint_channel_differences(const Tensor& dual) {
  return at::constant_pad_nd(dual.narrow(-3, 0, dual.size(-3) - 1), {0, 0, 0, 0, 1, 0}) - dual;
}

Tensor spread(const std::vector<double>& values, const Tensor& images) {
  return at::tensor(values, torch::kFloat64).to(images.device(), images.scalar_type()).view({images.size(0), -1, 1, 1});
}

}  // namespace mpol::ops
