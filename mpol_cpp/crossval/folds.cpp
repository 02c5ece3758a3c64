#include <mpol_cpp/crossval/folds.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/_unique2.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/coordinates/loglinspace.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/datasets/cell_split.h>
#include <mpol_cpp/datasets/deal.h>

namespace mpol {
namespace {

/// Index of a ground coordinate in packed order.
std::int64_t packed(std::int64_t ground, std::int64_t npix) { return (ground + npix / 2) % npix; }

/// The uv cell of each sample, or its Hermitian partner's, whichever has the smaller packed index: (nvis) int64.
Tensor cells_of(const GridCoords& coords, const Visibilities& visibilities) {
  coords.check_data_fit(visibilities.baselines().max_abs_u(), visibilities.baselines().max_abs_v());
  const auto npix = coords.npix();
  const auto [u, v] = visibilities.baselines().channel(visibilities.nchan() / 2);
  auto cells = at::empty({visibilities.nvis()}, torch::kInt64);
  auto* cell = cells.mutable_data_ptr<std::int64_t>();
  const auto* us = u.const_data_ptr<double>();
  const auto* vs = v.const_data_ptr<double>();
  for (std::int64_t i = 0; i < cells.numel(); ++i) {
    const auto column = coords.uv_cell(us[i]), row = coords.uv_cell(vs[i]);
    const auto own = packed(row, npix) * npix + packed(column, npix);
    const auto partner = packed((npix - row) % npix, npix) * npix + packed((npix - column) % npix, npix);
    cell[i] = std::min(own, partner);
  }
  return cells;
}

/// The occupied cells of the plane, partners as one, with the weights of all channels; and which one each sample is in.
std::pair<GriddedDataset, Tensor> plane_of(const GridCoords& coords, const Visibilities& visibilities) {
  const auto [cells, place, counts] = at::_unique2(cells_of(coords, visibilities), /*sorted=*/true, /*return_inverse=*/true);
  auto weights = at::zeros({cells.numel()}, torch::kFloat64);
  for (std::int64_t channel = 0; channel < visibilities.nchan(); ++channel) {
    weights.index_add_(0, place, visibilities.weights()[channel].to(torch::kCPU, torch::kFloat64));
  }
  return {GriddedDataset(coords, 1, cells, at::zeros({cells.numel()}, torch::kComplexDouble), weights), place};
}

Dartboard dartboard_of(const GriddedDataset& plane) {
  constexpr std::int64_t logarithmic = 4, linear = 5;  // 8 rings
  const auto& coords = plane->coords();
  const auto npix = coords.npix();
  const auto* cell = plane->cells().const_data_ptr<std::int64_t>();
  double largest = 1;  // distance from the origin in cells, squared
  for (std::int64_t i = 0; i < plane->ncells(); ++i) {
    const auto signed_index = [npix](std::int64_t index) { return static_cast<double>(index < npix / 2 ? index : index - npix); };
    const double row = signed_index(cell[i] / npix), column = signed_index(cell[i] % npix);
    largest = std::max(largest, row * row + column * column);
  }
  constexpr double beyond = 1 + 1e-6;
  return Dartboard(coords,
                   DartboardOptions().q_edges(loglinspace(0, beyond * std::sqrt(largest) * coords.du(), logarithmic, linear)));
}

}  // namespace

Folds::Folds(Tensor of_sample, std::int64_t folds, std::string kind)
    : sample_folds_(std::move(of_sample)), folds_(folds), kind_(std::move(kind)) {
  if (folds < 2) throw ValueError(fmt::format("the number of folds is {}; it must be at least 2", folds));
  std::vector<std::int64_t> held_out(static_cast<std::size_t>(folds), 0);
  const auto* fold = sample_folds_.const_data_ptr<std::int64_t>();
  const auto samples = sample_folds_.numel();
  for (std::int64_t i = 0; i < samples; ++i) {
    if (fold[i] < -1 || fold[i] >= folds)
      throw ValueError(fmt::format("sample {} is in fold {}; there are 0 … {}, and -1 for none", i, fold[i], folds - 1));
    if (fold[i] >= 0) ++held_out[static_cast<std::size_t>(fold[i])];
  }
  for (std::int64_t f = 0; f < folds; ++f) {
    const auto count = held_out[static_cast<std::size_t>(f)];
    if (count > 0 && count < samples) continue;
    throw DataError(fmt::format("fold {} of {} has {} of {} samples: ask for fewer folds", f, folds, count, samples));
  }
}

Folds Folds::random_cells(const GridCoords& coords, const Visibilities& visibilities, const FoldOptions& options) {
  const auto [plane, place] = plane_of(coords, visibilities);
  const RandomCellSplit split(
      plane, RandomCellSplitOptions().folds(options.folds()).seed(options.seed()).always_train(options.always_train()));
  return {split.held_out_in().index_select(0, place), options.folds(), "random cells"};
}

Folds Folds::dartboard(const GridCoords& coords, const Visibilities& visibilities, const FoldOptions& options) {
  const auto [plane, place] = plane_of(coords, visibilities);
  const DartboardSplit split(plane,
                             DartboardSplitOptions().folds(options.folds()).seed(options.seed()).dartboard(dartboard_of(plane)));
  return {split.held_out_in().index_select(0, place), options.folds(), "dartboard"};
}

Folds Folds::blocks(const Tensor& labels, const FoldOptions& options) {
  if (labels.dim() != 1 || labels.scalar_type() != torch::kInt64 || labels.numel() == 0)
    throw ShapeError("labels of blocks must be (nvis) int64, one for each sample");
  const auto [blocks, place, counts] = at::_unique2(labels.to(torch::kCPU), /*sorted=*/true, /*return_inverse=*/true);
  const auto dealt = deal(blocks.numel(), options.folds(), options.seed(), "blocks");
  auto of_sample = at::empty({labels.numel()}, torch::kInt64);
  const auto* block = place.const_data_ptr<std::int64_t>();
  auto* fold = of_sample.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < labels.numel(); ++i) fold[i] = dealt[static_cast<std::size_t>(block[i])];
  return {of_sample, options.folds(), "blocks"};
}

Folds Folds::custom(Tensor of_sample, std::int64_t folds) {
  if (of_sample.dim() != 1 || of_sample.scalar_type() != torch::kInt64)
    throw ShapeError("the folds of samples must be (nvis) int64, one for each sample");
  return {of_sample.to(torch::kCPU).contiguous(), folds, "custom"};
}

void Folds::check(std::int64_t fold) const {
  if (fold < 0 || fold >= folds_) throw ValueError(fmt::format("fold {} is not there; there are 0 … {}", fold, folds_ - 1));
}

Tensor Folds::test_samples(std::int64_t fold) const {
  check(fold);
  return (sample_folds_ == fold).nonzero().squeeze(1);
}

Tensor Folds::train_samples(std::int64_t fold) const {
  check(fold);
  return (sample_folds_ != fold).nonzero().squeeze(1);
}

}  // namespace mpol
