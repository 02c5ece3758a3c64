#pragma once

#include <cstdint>
#include <vector>

#include <ATen/ops/tensor.h>
#include <torch/types.h>

namespace mpol {

/// The given rows of a tensor, in that order: a view when they follow each other, else a copy.
inline torch::Tensor channel_rows(const torch::Tensor& values, const std::vector<std::int64_t>& rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  for (std::int64_t i = 1; i < count; ++i) {
    if (rows[static_cast<std::size_t>(i)] != rows[0] + i) return values.index_select(0, at::tensor(rows, torch::kInt64));
  }
  return values.narrow(0, rows[0], count);
}

}  // namespace mpol
