#include <mpol_cpp/ops/fused/gpu/fused_gpu_cells.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fused/cpu/fused_cells.h>

namespace mpol::ops {
namespace {

struct PairedCells {
  Tensor cells, data, weights;
};

/// Splits the cells of columns 0 and npix/2 between the two places of their Hermitian pair.
PairedCells split_pairs(const Tensor& cells, const Tensor& data, const Tensor& weights, std::int64_t npix) {
  const std::int64_t half = npix / 2 + 1;
  const auto flat = cells.to(torch::kCPU), column = flat.remainder(half);
  const auto values = data.to(torch::kCPU, torch::kComplexDouble), inverse_variance = weights.to(torch::kCPU, torch::kFloat64);
  const auto row = at::floor_divide(flat, half).remainder(npix);
  const auto paired = (column == 0).logical_or(column * 2 == npix);
  const auto partner = flat + ((npix - row).remainder(npix) - row) * half;
  return {at::cat({flat, partner.index({paired})}), at::cat({values, values.index({paired}).conj().resolve_conj()}),
          at::cat({at::where(paired, inverse_variance / 2, inverse_variance), inverse_variance.index({paired}) / 2})};
}

void check_cell_count(std::int64_t count) {
  if (count <= std::numeric_limits<std::int32_t>::max()) return;
  throw ValueError(fmt::format("{} cells are more than the fused step on a GPU counts: use the eager step", count));
}

template <typename T>
class CellTables {
 public:
  CellTables(const std::vector<ColumnCells<T>>& channels, std::int64_t npix) : half_(npix / 2 + 1) {
    std::int64_t size = 0;
    for (const auto& channel : channels) size += static_cast<std::int64_t>(channel.row.size());
    check_cell_count(size);
    cells_.weight = at::empty({size}, c10::CppTypeToScalarType<T>::value);
    cells_.real = at::empty_like(cells_.weight);
    cells_.imag = at::empty_like(cells_.weight);
    cells_.cell_of = at::full({static_cast<std::int64_t>(channels.size()), npix, half_}, -1, torch::kInt32);
    auto* cell_of = cells_.cell_of.template mutable_data_ptr<std::int32_t>();
    std::vector<double> constants;
    for (const auto& channel : channels) {
      add(channel, cell_of);
      cell_of += npix * half_;
      constants.push_back(channel.constant);
    }
    cells_.channel_constants = at::tensor(constants, torch::kFloat64);
    cells_.constant = cells_.channel_constants.sum(0, /*keepdim=*/true);
  }
  GpuCells take() { return std::move(cells_); }

 private:
  void add(const ColumnCells<T>& channel, std::int32_t* cell_of) {
    auto* weight = cells_.weight.template mutable_data_ptr<T>();
    auto* real = cells_.real.template mutable_data_ptr<T>();
    auto* imag = cells_.imag.template mutable_data_ptr<T>();
    for (const auto& [place, index] : by_place(channel)) {
      weight[count_] = channel.weight[index];
      real[count_] = channel.real[index];
      imag[count_] = channel.imag[index];
      cell_of[place] = count_++;
    }
  }

  std::vector<std::pair<std::int64_t, std::size_t>> by_place(const ColumnCells<T>& channel) const {
    std::vector<std::pair<std::int64_t, std::size_t>> places;
    places.reserve(channel.row.size());
    for (std::size_t k = 0; k < channel.columns.size(); ++k) {
      for (auto i = static_cast<std::size_t>(channel.begin[k]); i < static_cast<std::size_t>(channel.begin[k + 1]); ++i) {
        places.emplace_back(channel.row[i] * half_ + channel.columns[k], i);
      }
    }
    std::sort(places.begin(), places.end());
    return places;
  }

  std::int64_t half_;
  std::int32_t count_ = 0;
  GpuCells cells_;
};

}  // namespace

GpuCells gpu_cells(const Tensor& cells, const Tensor& data, const Tensor& weights, std::int64_t nchan, std::int64_t npix,
                   torch::Dtype dtype) {
  const auto paired = split_pairs(cells, data, weights, npix);
  const auto tables = [&]<typename T>(T) {
    return CellTables<T>(column_cells<T>(paired.cells, paired.data, paired.weights, nchan, npix), npix).take();
  };
  return dtype == torch::kFloat64 ? tables(double{}) : tables(float{});
}

GpuCells joined_cells(const std::vector<GpuCells>& problems) {
  if (problems.size() == 1) return problems.front();
  std::vector<Tensor> cell_of, weight, real, imag, constant, channel_constants;
  std::int64_t count = 0;
  for (const auto& cells : problems) {
    cell_of.push_back(at::where(cells.cell_of < 0, cells.cell_of, cells.cell_of + count));
    weight.push_back(cells.weight), real.push_back(cells.real), imag.push_back(cells.imag);
    constant.push_back(cells.constant);
    channel_constants.push_back(cells.channel_constants);
    check_cell_count(count += cells.weight.numel());
  }
  return {at::cat(cell_of), at::cat(weight), at::cat(real), at::cat(imag), at::cat(constant), at::cat(channel_constants)};
}

GpuColumns columns_of(const GpuCells& cells, bool all) {
  const auto by_column = cells.cell_of.transpose(1, 2);  // (nchan, npix/2 + 1, npix)
  const auto holds = all ? at::ones({by_column.size(1)}, torch::kBool) : by_column.ge(0).any(2).any(0);
  const auto kept = holds.nonzero().squeeze(1);
  const auto places = by_column.index_select(1, kept).contiguous();
  const auto occupied = places.ge(0);
  const auto order = places.index({occupied}).to(torch::kInt64);
  GpuColumns columns;
  columns.column = kept.to(torch::kInt32);
  columns.number = at::where(holds, holds.cumsum(0) - 1, -1).to(torch::kInt32);
  columns.cells.cell_of = at::full_like(places, -1);
  columns.cells.cell_of.index_put_({occupied}, at::arange(order.size(0), torch::kInt32));
  columns.cells.weight = cells.weight.index_select(0, order);
  columns.cells.real = cells.real.index_select(0, order);
  columns.cells.imag = cells.imag.index_select(0, order);
  columns.cells.constant = cells.constant;
  columns.cells.channel_constants = cells.channel_constants;
  return columns;
}

Tensor even_inverse_power(const Tensor& inverse_power) {
  const auto npix = inverse_power.size(0), nyquist = npix / 2;
  auto even = inverse_power.to(torch::kCPU, torch::kFloat64).clone();
  for (const auto column : {std::int64_t{0}, nyquist}) {
    const auto values = even.select(1, column).clone();
    const auto partners = at::cat({values.narrow(0, 0, 1), values.narrow(0, 1, npix - 1).flip(0)});
    even.select(1, column).copy_((values + partners) / 2);
  }
  return even;
}

}  // namespace mpol::ops
