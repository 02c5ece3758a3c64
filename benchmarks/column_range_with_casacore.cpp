#include "column_range_with_casacore.h"

#include <algorithm>

#include <casacore/casa/Arrays/Array.h>
#include <casacore/casa/Arrays/Matrix.h>
#include <casacore/casa/Arrays/Slicer.h>
#include <casacore/casa/Arrays/Vector.h>
#include <casacore/ms/MeasurementSets/MSColumns.h>
#include <casacore/ms/MeasurementSets/MeasurementSet.h>
#include <casacore/tables/DataMan/TiledShapeStMan.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/SetupNewTab.h>
#include <casacore/tables/Tables/TableDesc.h>

namespace benchmarks {
namespace {

using casacore::IPosition;

constexpr ssize_t nchan = 64, ncorr = 2;

template <typename Value>
std::int64_t read_arrays(const casacore::Table& set, const char* column, const casacore::Slicer& rows,
                         casacore::Array<Value>& into) {
  casacore::ArrayColumn<Value>(set, column).getColumnRange(rows, into, true);
  return static_cast<std::int64_t>(into.nelements());
}

template <typename Value>
std::int64_t read_scalars(const casacore::Table& set, const char* column, const casacore::Slicer& rows,
                          casacore::Vector<Value>& into) {
  casacore::ScalarColumn<Value>(set, column).getColumnRange(rows, into, true);
  return static_cast<std::int64_t>(into.nelements());
}

void fill_subtables(casacore::MeasurementSet& set) {
  casacore::MSColumns columns(set);
  set.dataDescription().addRow();
  columns.dataDescription().spectralWindowId().put(0, 0);
  columns.dataDescription().polarizationId().put(0, 0);
  set.polarization().addRow();
  casacore::Vector<casacore::Int> hands(ncorr);
  hands(0) = 9, hands(1) = 12;
  columns.polarization().corrType().put(0, hands);
  set.spectralWindow().addRow();
  casacore::Vector<double> frequencies(nchan);
  for (ssize_t i = 0; i < nchan; ++i) frequencies(i) = 230e9 + 1e6 * static_cast<double>(i);
  columns.spectralWindow().measFreqRef().put(0, 5);
  columns.spectralWindow().chanFreq().put(0, frequencies);
  columns.spectralWindow().chanWidth().put(0, casacore::Vector<double>(nchan, 1e6));
  set.field().addRow();
  casacore::ArrayColumn<double>(set.field(), "PHASE_DIR").put(0, casacore::Matrix<double>(2, 1, 0.5));
  set.observation().addRow();
}

}  // namespace

std::int64_t read_columns(const std::string& path, Rows at_once) {
  const casacore::Table set(path, casacore::TableLock(casacore::TableLock::UserNoReadLocking));
  const auto rows = static_cast<std::int64_t>(set.nrow()),
             block = at_once == Rows::all ? rows : (std::int64_t{1} << 19) / (ncorr * nchan);
  casacore::Array<casacore::Complex> data;
  casacore::Array<casacore::Bool> flags;
  casacore::Array<double> uvw;
  casacore::Array<float> weights;
  casacore::Vector<casacore::Int> ids;
  casacore::Vector<double> times;
  casacore::Vector<casacore::Bool> flag_row;
  std::int64_t values = 0;
  for (std::int64_t begin = 0; begin < rows; begin += block) {
    const casacore::Slicer range(IPosition(1, begin), IPosition(1, std::min(block, rows - begin)));
    values += read_arrays(set, "DATA", range, data) + read_arrays(set, "FLAG", range, flags) +
              read_arrays(set, "UVW", range, uvw) + read_arrays(set, "WEIGHT", range, weights) +
              read_scalars(set, "TIME", range, times) + read_scalars(set, "FLAG_ROW", range, flag_row);
    for (const auto* column : {"ANTENNA1", "ANTENNA2", "DATA_DESC_ID", "FIELD_ID", "OBSERVATION_ID"})
      values += read_scalars(set, column, range, ids);
  }
  return values;
}

void make_set(const std::string& path, std::int64_t rows) {
  using casacore::MS;
  auto description = MS::requiredTableDesc();
  MS::addColumnToDesc(description, MS::DATA, 2);
  casacore::SetupNewTable setup(path, description, casacore::Table::New);
  const casacore::TiledShapeStMan data_tiles("TiledData", IPosition(3, ncorr, nchan, 1024)),
      flag_tiles("TiledFlag", IPosition(3, ncorr, nchan, 4096)), weight_tiles("TiledWeight", IPosition(2, ncorr, 32768)),
      uvw_tiles("TiledUvw", IPosition(2, 3, 16384));
  setup.bindColumn("DATA", data_tiles);
  setup.bindColumn("FLAG", flag_tiles);
  setup.bindColumn("WEIGHT", weight_tiles);
  setup.bindColumn("UVW", uvw_tiles);
  casacore::MeasurementSet set(setup, static_cast<casacore::rownr_t>(rows));
  set.createDefaultSubtables(casacore::Table::New);
  fill_subtables(set);
  casacore::ArrayColumn<casacore::Complex> data(set, "DATA");
  casacore::ArrayColumn<casacore::Bool> flags(set, "FLAG");
  casacore::ArrayColumn<float> weight(set, "WEIGHT");
  casacore::ArrayColumn<double> uvw(set, "UVW");
  casacore::ScalarColumn<casacore::Int> antenna2(set, "ANTENNA2");
  casacore::Array<casacore::Complex> cell(IPosition(2, ncorr, nchan), casacore::Complex(1, 0.5));
  casacore::Array<casacore::Bool> flag(IPosition(2, ncorr, nchan), false);
  flag(IPosition(2, 0, 7)) = true;
  casacore::Vector<double> baseline(3, 0.0);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto row = static_cast<casacore::rownr_t>(i);
    data.put(row, cell);
    flags.put(row, flag);
    weight.put(row, casacore::Vector<float>(ncorr, 2.0F));
    baseline(0) = static_cast<double>(i % 977) - 400, baseline(1) = static_cast<double>(i % 463) - 200;
    uvw.put(row, baseline);
    antenna2.put(row, 1);
  }
  set.flush();
}

}  // namespace benchmarks
