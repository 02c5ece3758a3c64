#include <mpol_cpp/calibration/shared_cells.h>

#include <algorithm>

#include <ATen/ops/_unique2.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::int64_t samples_at_once = 1 << 18;

/// Numbers of cells, those of Hermitian partners alike.
Tensor cell_numbers(const Tensor& u, const Tensor& v, double width) {
  constexpr std::int64_t stride = std::int64_t{1} << 24;
  const auto columns = (u / width + 0.5).floor().to(torch::kInt64), rows = (v / width + 0.5).floor().to(torch::kInt64);
  const auto mirrored = (rows < 0).logical_or((rows == 0).logical_and(columns < 0));
  const auto sign = 1 - 2 * mirrored.to(torch::kInt64);
  return rows * sign * stride + columns * sign + stride / 2;
}

}  // namespace

SharedCells::SharedCells(const Visibilities& visibilities, const SampleBlocks& blocks, double width)
    : visibilities_(visibilities), blocks_(blocks), width_(width) {
  blocks.check(visibilities.nchan(), visibilities.nvis());
  if (!(width > 0)) throw ValueError(fmt::format("the width of uv cells is {}; it must be > 0", width));
  Tensor sums;  // of weights
  for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
    for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += samples_at_once) {
      const auto end = std::min(visibilities.nvis(), begin + samples_at_once);
      auto keys = keys_of(channel, begin, end), weights = visibilities.block(channel, begin, end).weights;
      if (keys_.defined()) keys = at::cat({keys_, keys}), weights = at::cat({sums, weights});
      const auto [unique, place, counts] = at::_unique2(keys, /*sorted=*/true, /*return_inverse=*/true);
      keys_ = unique;
      sums = at::zeros({unique.numel()}, torch::kFloat64).index_add_(0, place, weights);
    }
  }
  const auto count = blocks.size();
  const auto [cells, place, in_cell] =
      at::unique_consecutive(keys_.div(count, "floor"), /*return_inverse=*/true, /*return_counts=*/true);
  const auto all = at::zeros({cells.numel()}, torch::kFloat64).index_add_(0, place, sums);
  const auto has_others = (in_cell.index_select(0, place) > 1).to(torch::kFloat64);
  others_ = (1 - sums / all.index_select(0, place)) * has_others;  // exactly 0 where a block is alone
  const auto by_block = [&](const Tensor& values) {
    return at::zeros({count}, torch::kFloat64).index_add_(0, keys_.remainder(count), values);
  };
  const auto shared = (by_block(sums * has_others) / by_block(sums)).contiguous();
  shared_.assign(shared.const_data_ptr<double>(), shared.const_data_ptr<double>() + count);
}

Tensor SharedCells::keys_of(std::int64_t channel, std::int64_t begin, std::int64_t end) const {
  const auto [u, v] = visibilities_.baselines().block(channel, begin, end);
  return cell_numbers(u, v, width_) * blocks_.size() + blocks_.of(channel, begin, end);
}

Tensor SharedCells::part_of_others(std::int64_t channel, std::int64_t begin, std::int64_t end) const {
  return others_.index_select(0, at::searchsorted(keys_, keys_of(channel, begin, end)));
}

}  // namespace mpol
