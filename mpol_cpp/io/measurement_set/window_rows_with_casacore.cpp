#include <mpol_cpp/io/measurement_set/window_rows_casacore.h>

#include <algorithm>
#include <utility>

#include <casacore/casa/Arrays/IPosition.h>
#include <casacore/tables/Tables/TableDesc.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

/// How many of the rows have a cell. A column that is not attached has none.
template <typename Column>
std::int64_t defined(const Column& column, std::int64_t begin, std::int64_t count) {
  if (column.isNull()) return 0;
  std::int64_t found = 0;
  for (std::int64_t row = begin; row < begin + count; ++row) found += column.isDefined(static_cast<casacore::rownr_t>(row));
  return found;
}

}  // namespace

casacore::Slicer row_range(std::int64_t begin, std::int64_t count) {
  return {casacore::IPosition(1, begin), casacore::IPosition(1, count)};
}

SetCells CellArrays::view(std::int64_t rows) const {
  SetCells cells;
  cells.rows = rows;
  cells.data = data.data();
  cells.flags = flags.data();
  cells.weights = weights.data();
  cells.weights_by_channel = weights_by_channel;
  cells.uvw = uvw.data();
  cells.antenna1 = antenna1.data();
  cells.antenna2 = antenna2.data();
  cells.observations = observations.data();
  cells.flag_row = flag_row.data();
  if (!times.empty()) cells.times = times.data();
  if (!fields.empty()) cells.fields = fields.data();
  if (!scans.empty()) cells.scans = scans.data();
  return cells;
}

WindowRows::WindowRows(const casacore::Table& rows, const std::string& data_column, std::int64_t ncorr, std::int64_t nchan)
    : rows_(rows), ncorr_(ncorr), nchan_(nchan), data_(rows, data_column), flags_(rows, "FLAG"), uvw_(rows, "UVW") {
  const auto& columns = rows.tableDesc();
  if (columns.isColumn("WEIGHT_SPECTRUM")) spectrum_.attach(rows, "WEIGHT_SPECTRUM");
  if (columns.isColumn("WEIGHT")) weight_.attach(rows, "WEIGHT");
  if (columns.isColumn("SIGMA")) sigma_.attach(rows, "SIGMA");
  antenna1_.attach(rows, "ANTENNA1");
  antenna2_.attach(rows, "ANTENNA2");
  observation_.attach(rows, "OBSERVATION_ID");
  flag_row_.attach(rows, "FLAG_ROW");
  const casacore::IPosition expected(2, ncorr, nchan);
  if (!data_.isDefined(0) || data_.shape(0).isEqual(expected)) return;
  throw DataError(
      fmt::format("{} has cells of {} hands and {} channels where POLARIZATION and SPECTRAL_WINDOW say {} and {}; the "
                  "set is inconsistent: write it anew",
                  data_column, data_.shape(0)[0], data_.shape(0).last(), ncorr, nchan));
}

void WindowRows::read(std::int64_t begin, std::int64_t count, CellArrays& cells) const {
  const auto range = row_range(begin, count);
  data_.getColumnRange(range, cells.data, /*resize=*/true);
  flags_.getColumnRange(range, cells.flags, /*resize=*/true);
  uvw_.getColumnRange(range, cells.uvw, /*resize=*/true);
  antenna1_.getColumnRange(range, cells.antenna1, /*resize=*/true);
  antenna2_.getColumnRange(range, cells.antenna2, /*resize=*/true);
  observation_.getColumnRange(range, cells.observations, /*resize=*/true);
  flag_row_.getColumnRange(range, cells.flag_row, /*resize=*/true);
  read_weights(begin, count, cells);
  check_shapes(cells, count);
}

void WindowRows::read_tracks(std::int64_t begin, std::int64_t count, CellArrays& cells) const {
  const auto range = row_range(begin, count);
  const auto& columns = rows_.tableDesc();
  const auto whole_numbers = [&](const char* name, casacore::Vector<casacore::Int>& values) {
    if (columns.isColumn(name)) casacore::ScalarColumn<casacore::Int>(rows_, name).getColumnRange(range, values, /*resize=*/true);
  };
  casacore::ScalarColumn<double>(rows_, "TIME").getColumnRange(range, cells.times, /*resize=*/true);
  whole_numbers("FIELD_ID", cells.fields);
  whole_numbers("SCAN_NUMBER", cells.scans);
}

void WindowRows::read_weights(std::int64_t begin, std::int64_t count, CellArrays& cells) const {
  const auto with_spectrum = defined(spectrum_, begin, count);
  cells.weights_by_channel = with_spectrum > 0;
  if (with_spectrum == count) return spectrum_.getColumnRange(row_range(begin, count), cells.weights, /*resize=*/true);
  auto of_rows = with_spectrum > 0 ? casacore::Array<float>() : std::move(cells.weights);
  if (defined(weight_, begin, count) == count) weight_.getColumnRange(row_range(begin, count), of_rows, /*resize=*/true);
  else read_row_by_row(begin, count, of_rows);
  if (with_spectrum == 0) {
    cells.weights.reference(of_rows);
    return;
  }
  cells.weights.resize(casacore::IPosition(3, ncorr_, nchan_, count));
  for (std::int64_t i = 0; i < count; ++i)
    fill_spectrum(begin + i, of_rows.data() + i * ncorr_, cells.weights.data() + i * ncorr_ * nchan_);
}

/// WEIGHT where it is defined, else 1/SIGMA^2, else 0.
void WindowRows::read_row_by_row(std::int64_t begin, std::int64_t count, casacore::Array<float>& weights) const {
  weights.resize(casacore::IPosition(2, ncorr_, count));
  weights = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t number = begin + i;
    const auto row = static_cast<casacore::rownr_t>(number);
    const bool has_weight = !weight_.isNull() && weight_.isDefined(row);
    if (!has_weight && (sigma_.isNull() || !sigma_.isDefined(row))) continue;
    const casacore::Array<float> cell = has_weight ? weight_(row) : sigma_(row);
    const auto values = cell.tovector();
    for (std::int64_t hand = 0; hand < std::min<std::int64_t>(ncorr_, static_cast<std::int64_t>(values.size())); ++hand) {
      const float value = values[static_cast<std::size_t>(hand)];
      weights.data()[i * ncorr_ + hand] = has_weight ? value : value > 0 ? 1 / (value * value) : 0;
    }
  }
}

void WindowRows::fill_spectrum(std::int64_t row, const float* of_row, float* spectrum) const {
  const auto at = static_cast<casacore::rownr_t>(row);
  const auto size = static_cast<std::size_t>(ncorr_ * nchan_);
  if (spectrum_.isDefined(at)) {
    const auto values = spectrum_(at).tovector();
    if (values.size() == size) {
      std::copy(values.begin(), values.end(), spectrum);
      return;
    }
  }
  for (std::int64_t c = 0; c < nchan_; ++c) std::copy_n(of_row, ncorr_, spectrum + c * ncorr_);
}

void WindowRows::check_shapes(const CellArrays& cells, std::int64_t count) const {
  const auto all = ncorr_ * nchan_ * count;
  const auto has = [](const auto& values, std::int64_t size) { return static_cast<std::int64_t>(values.nelements()) == size; };
  if (has(cells.data, all) && has(cells.flags, all) && has(cells.uvw, 3 * count) &&
      has(cells.weights, cells.weights_by_channel ? all : ncorr_ * count))
    return;
  throw DataError(fmt::format("{}: data, flags and weights have different shapes; the set is inconsistent: write it anew",
                              std::string(rows_.tableName())));
}

}  // namespace mpol::io
