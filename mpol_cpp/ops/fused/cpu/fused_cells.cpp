#include <mpol_cpp/ops/fused/cpu/fused_cells.h>

#include <algorithm>
#include <complex>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/fft/line_transforms.h>

namespace mpol::ops {
namespace {

struct Cell {
  std::int64_t place;  // column * npix + row
  double weight;
  std::complex<double> data;
};

std::vector<std::vector<Cell>> cells_of_channels(const Tensor& cells, const Tensor& data, const Tensor& weights,
                                                 std::int64_t nchan, std::int64_t npix) {
  const auto index = cells.to(torch::kCPU).contiguous();
  const auto values = data.to(torch::kCPU, torch::kComplexDouble).contiguous();
  const auto inverse_variance = weights.to(torch::kCPU, torch::kFloat64).contiguous();
  const auto* flat = index.const_data_ptr<std::int64_t>();
  const auto* value = values.const_data_ptr<c10::complex<double>>();
  const auto* weight = inverse_variance.const_data_ptr<double>();
  const std::int64_t half = npix / 2 + 1;
  std::vector<std::vector<Cell>> channels(static_cast<std::size_t>(nchan));
  for (std::int64_t i = 0; i < index.numel(); ++i) {
    if (flat[i] < 0 || flat[i] >= nchan * npix * half) {
      throw ValueError(fmt::format("cell {} is outside the half plane of {} channels of {} x {}", flat[i], nchan, npix, half));
    }
    const auto row = flat[i] / half % npix, column = flat[i] % half;
    channels[static_cast<std::size_t>(flat[i] / (half * npix))].push_back(
        {column * npix + row, weight[i], {value[i].real(), value[i].imag()}});
  }
  return channels;
}

/// Takes up a cell of the same place; returns what of chi^2 no model can change.
double merge(Cell& cell, const Cell& other) {
  const double weight = cell.weight + other.weight;
  if (!(weight > 0)) return 0;
  const auto difference = other.data - cell.data;
  const double constant = cell.weight * other.weight / weight * std::norm(difference);
  cell.data += other.weight / weight * difference;
  cell.weight = weight;
  return constant;
}

template <typename T>
void append(ColumnCells<T>& channel, const Cell& cell, std::int64_t npix) {
  const auto column = static_cast<std::int32_t>(cell.place / npix);
  if (channel.columns.empty() || channel.columns.back() != column) {
    channel.columns.push_back(column);
    channel.begin.push_back(static_cast<std::int32_t>(channel.row.size()));
  }
  channel.row.push_back(static_cast<std::int32_t>(cell.place % npix));
  channel.weight.push_back(static_cast<T>(cell.weight));
  channel.real.push_back(static_cast<T>(cell.data.real()));
  channel.imag.push_back(static_cast<T>(cell.data.imag()));
}

}  // namespace

template <typename T>
std::vector<ColumnCells<T>> column_cells(const Tensor& cells, const Tensor& data, const Tensor& weights, std::int64_t nchan,
                                         std::int64_t npix) {
  std::vector<ColumnCells<T>> result;
  for (auto& channel : cells_of_channels(cells, data, weights, nchan, npix)) {
    std::stable_sort(channel.begin(), channel.end(), [](const Cell& a, const Cell& b) { return a.place < b.place; });
    auto& merged = result.emplace_back();
    for (std::size_t i = 0; i < channel.size();) {
      Cell cell = channel[i];
      for (++i; i < channel.size() && channel[i].place == cell.place; ++i) merged.constant += merge(cell, channel[i]);
      append(merged, cell, npix);
    }
    merged.begin.push_back(static_cast<std::int32_t>(merged.row.size()));
  }
  return result;
}

template <typename T>
ColumnCells<T> with_every_column(const ColumnCells<T>& cells, std::int64_t half) {
  auto every = cells;
  every.columns.clear();
  every.begin.clear();
  std::size_t k = 0;
  for (std::int32_t column = 0; column < half; ++column) {
    every.columns.push_back(column);
    every.begin.push_back(cells.begin[k]);
    if (k < cells.columns.size() && cells.columns[k] == column) ++k;
  }
  every.begin.push_back(cells.begin.back());
  return every;
}

template <typename T>
PanelCells<T> panel_cells(const ColumnCells<T>& cells, const std::vector<std::int32_t>& slots) {
  constexpr std::size_t batch = fft_batch<T>;
  PanelCells<T> panels;
  panels.columns = cells.columns;
  panels.constant = cells.constant;
  panels.begin = {0};
  for (std::size_t first = 0; first < cells.columns.size(); first += batch) {
    std::vector<std::pair<std::int32_t, std::size_t>> places;  // and the cell
    for (std::size_t lane = 0; lane < batch && first + lane < cells.columns.size(); ++lane) {
      const auto begin = static_cast<std::size_t>(cells.begin[first + lane]),
                 end = static_cast<std::size_t>(cells.begin[first + lane + 1]);
      for (auto i = begin; i < end; ++i) {
        const auto slot = slots[static_cast<std::size_t>(cells.row[i])];
        places.emplace_back(slot * static_cast<std::int32_t>(2 * batch) + static_cast<std::int32_t>(lane), i);
      }
    }
    std::sort(places.begin(), places.end());
    for (const auto& [place, i] : places) {
      panels.place.push_back(place);
      panels.weight.push_back(cells.weight[i]);
      panels.real.push_back(cells.real[i]);
      panels.imag.push_back(cells.imag[i]);
    }
    panels.begin.push_back(static_cast<std::int32_t>(panels.place.size()));
  }
  return panels;
}

template PanelCells<float> panel_cells(const ColumnCells<float>&, const std::vector<std::int32_t>&);
template PanelCells<double> panel_cells(const ColumnCells<double>&, const std::vector<std::int32_t>&);
template ColumnCells<float> with_every_column(const ColumnCells<float>&, std::int64_t);
template ColumnCells<double> with_every_column(const ColumnCells<double>&, std::int64_t);
template std::vector<ColumnCells<float>> column_cells(const Tensor&, const Tensor&, const Tensor&, std::int64_t, std::int64_t);
template std::vector<ColumnCells<double>> column_cells(const Tensor&, const Tensor&, const Tensor&, std::int64_t, std::int64_t);

}  // namespace mpol::ops
