#include <mpol_cpp/gridding/data_averager.h>

#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/log.h>
#include <mpol_cpp/gridding/cells/cell_sums.h>

namespace mpol {

DataAverager::DataAverager(const GridCoords& coords, const Visibilities& visibilities, DataAveragerOptions options)
    : coords_(coords),
      visibilities_(visibilities),
      options_(std::move(options)),
      channel_map_(options_.channel_map().value_or(ChannelMap::cube(visibilities.nchan()))) {
  gridding::CellSumOptions sum_options;
  sum_options.hermitian_pairs = options_.hermitian_pairs();
  sum_options.cell_statistics = options_.keep_statistics();
  auto sums = gridding::sum_cells(coords_, visibilities_, channel_map_, sum_options);
  if (options_.keep_statistics()) statistics_ = {sums.cells, std::move(sums.samples), std::move(sums.real), std::move(sums.imag)};
  cells_ = std::move(sums.cells);
  averages_ = std::move(sums.averages);
  weights_ = std::move(sums.weights);
  scatter_ = sums.scatter;
}

std::int64_t DataAverager::nvis() const {
  std::int64_t rows = 0;
  for (const auto& sources : channel_map_.sources) rows += static_cast<std::int64_t>(sources.size());
  return rows * visibilities_.nvis();
}

GriddedDataset DataAverager::to_dataset() const {
  if (options_.scatter_check() != ScatterCheck::off && !scatter_.acceptable()) {
    if (options_.scatter_check() == ScatterCheck::error) {
      throw DataError(scatter_.description() + ", or set scatter_check to warn or off");
    }
    log_warning(scatter_.description());
  }
  auto dataset = GriddedDataset(coords_, nchan(), cells_, averages_, weights_);
  dataset->set_nvis(nvis());
  return dataset;
}

CellStatistics DataAverager::cell_statistics() const {
  if (statistics_) return *statistics_;
  gridding::CellSumOptions sum_options;
  sum_options.hermitian_pairs = options_.hermitian_pairs();
  sum_options.cell_statistics = true;
  auto sums = gridding::sum_cells(coords_, visibilities_, channel_map_, sum_options);
  return {std::move(sums.cells), std::move(sums.samples), std::move(sums.real), std::move(sums.imag)};
}

}  // namespace mpol
