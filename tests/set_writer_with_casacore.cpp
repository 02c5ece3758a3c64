#include "set_writer.h"

#include <algorithm>
#include <string>

#include <casacore/casa/Arrays/ArrayMath.h>
#include <casacore/casa/Arrays/Matrix.h>
#include <casacore/casa/Arrays/Vector.h>
#include <casacore/ms/MeasurementSets/MSColumns.h>
#include <casacore/ms/MeasurementSets/MeasurementSet.h>
#include <casacore/tables/Tables/ArrColDesc.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScaColDesc.h>
#include <casacore/tables/Tables/SetupNewTab.h>
#include <casacore/tables/Tables/TableDesc.h>

namespace mpol::testing {
namespace {

using casacore::IPosition;
using casacore::MS;

template <typename To, typename From>
casacore::Array<To> array_of(const std::vector<From>& values, const IPosition& shape) {
  casacore::Array<To> array(shape);
  std::size_t i = 0;
  for (auto& value : array) value = static_cast<To>(values[i++]);
  return array;
}

void fill_windows(casacore::MeasurementSet& set, const TestSet& source) {
  casacore::MSColumns columns(set);
  for (std::size_t i = 0; i < source.windows.size(); ++i) {
    const auto& window = source.windows[i];
    const auto nchan = static_cast<casacore::Int>(window.frequencies.size());
    set.dataDescription().addRow();
    columns.dataDescription().spectralWindowId().put(i, static_cast<casacore::Int>(i));
    columns.dataDescription().polarizationId().put(i, static_cast<casacore::Int>(i));
    set.polarization().addRow();
    const auto ncorr = static_cast<ssize_t>(window.correlations.size());
    columns.polarization().numCorr().put(i, static_cast<casacore::Int>(ncorr));
    columns.polarization().corrType().put(i, array_of<casacore::Int>(window.correlations, IPosition(1, ncorr)));
    set.spectralWindow().addRow();
    columns.spectralWindow().numChan().put(i, nchan);
    columns.spectralWindow().measFreqRef().put(i, window.frame);
    columns.spectralWindow().chanFreq().put(i, array_of<double>(window.frequencies, IPosition(1, nchan)));
    const double width = nchan > 1 ? window.frequencies[1] - window.frequencies[0] : 1e6;
    columns.spectralWindow().chanWidth().put(i, casacore::Vector<double>(static_cast<std::size_t>(nchan), width));
  }
}

/// As many as rows name; other programs than ours want them.
void fill_antennas(casacore::MeasurementSet& set, const TestSet& source) {
  int last = 0;
  for (const auto& row : source.rows) last = std::max({last, row.antenna1, row.antenna2});
  casacore::MSColumns columns(set);
  for (int i = 0; i <= last; ++i) {
    const auto at = static_cast<casacore::rownr_t>(i);
    set.antenna().addRow();
    columns.antenna().name().put(at, "A" + std::to_string(i));
    columns.antenna().dishDiameter().put(at, 12.0);
    casacore::Vector<double> position(3, 0.0);
    position(0) = 2.2e6 + 10.0 * i, position(1) = -5.4e6, position(2) = -2.5e6;
    columns.antenna().position().put(at, position);
  }
}

void fill_fields(casacore::MeasurementSet& set, const TestSet& source) {
  casacore::MSColumns columns(set);
  for (std::size_t i = 0; i < source.fields.size(); ++i) {
    set.field().addRow();
    columns.field().name().put(i, source.fields[i].name);
    columns.field().sourceId().put(i, static_cast<casacore::Int>(i));
    casacore::Matrix<double> direction(2, 1);
    direction(0, 0) = source.fields[i].right_ascension;
    direction(1, 0) = source.fields[i].declination;
    casacore::ArrayColumn<double>(set.field(), "PHASE_DIR").put(i, direction);
  }
  set.observation().addRow();
  columns.observation().telescopeName().put(0, "ALMA");
}

}  // namespace

void write_set(const std::filesystem::path& path, const TestSet& source) {
  auto description = MS::requiredTableDesc();
  MS::addColumnToDesc(description, MS::DATA, 2);
  bool corrected = false, spectrum = false;
  for (const auto& row : source.rows)
    corrected = corrected || !row.corrected.empty(), spectrum = spectrum || !row.spectrum.empty();
  if (corrected) MS::addColumnToDesc(description, MS::CORRECTED_DATA, 2);
  if (spectrum) MS::addColumnToDesc(description, MS::WEIGHT_SPECTRUM, 2);
  casacore::SetupNewTable setup(path.string(), description, casacore::Table::New);
  casacore::MeasurementSet set(setup, source.rows.size());
  set.createDefaultSubtables(casacore::Table::New);
  fill_windows(set, source);
  fill_fields(set, source);
  fill_antennas(set, source);
  const auto ints = [&](const char* column) { return casacore::ScalarColumn<casacore::Int>(set, column); };
  casacore::ArrayColumn<casacore::Complex> data(set, "DATA"), corrected_data;
  casacore::ArrayColumn<float> weight(set, "WEIGHT"), sigma(set, "SIGMA"), weight_spectrum;
  casacore::ArrayColumn<casacore::Bool> flags(set, "FLAG");
  if (corrected) corrected_data.attach(set, "CORRECTED_DATA");
  if (spectrum) weight_spectrum.attach(set, "WEIGHT_SPECTRUM");
  for (std::size_t i = 0; i < source.rows.size(); ++i) {
    const auto& row = source.rows[i];
    const auto& window = source.windows[static_cast<std::size_t>(row.window)];
    const auto ncorr = static_cast<ssize_t>(window.correlations.size()), nchan = static_cast<ssize_t>(window.frequencies.size());
    const IPosition cell(2, ncorr, nchan), hands(1, ncorr);
    ints("DATA_DESC_ID").put(i, row.window);
    ints("FIELD_ID").put(i, row.field);
    ints("ANTENNA1").put(i, row.antenna1);
    ints("ANTENNA2").put(i, row.antenna2);
    ints("OBSERVATION_ID").put(i, row.observation);
    ints("SCAN_NUMBER").put(i, row.scan);
    casacore::ScalarColumn<double>(set, "TIME")
        .put(i, 4845594201.0 + row.time.value_or(static_cast<double>(i)));  // 2012-06-02T05:43:21
    casacore::ScalarColumn<casacore::Bool>(set, "FLAG_ROW").put(i, row.flag_row);
    casacore::ArrayColumn<double>(set, "UVW")
        .put(i, array_of<double>(std::vector<double>(row.uvw.begin(), row.uvw.end()), IPosition(1, 3)));
    data.put(i, array_of<casacore::Complex>(row.data, cell));
    if (!row.corrected.empty()) corrected_data.put(i, array_of<casacore::Complex>(row.corrected, cell));
    const auto unflagged = std::vector<bool>(row.data.size(), false);
    flags.put(i, array_of<casacore::Bool>(row.flags.empty() ? unflagged : row.flags, cell));
    if (!row.weight.empty()) weight.put(i, array_of<float>(row.weight, hands));
    if (!row.sigma.empty()) sigma.put(i, array_of<float>(row.sigma, hands));
    if (!row.spectrum.empty()) weight_spectrum.put(i, array_of<float>(row.spectrum, cell));
  }
  set.flush();
}

std::vector<std::complex<float>> complex_column(const std::filesystem::path& path, const std::string& column) {
  const casacore::Table set(path.string());
  const casacore::ArrayColumn<casacore::Complex> cells(set, column);
  std::vector<std::complex<float>> all;
  for (casacore::rownr_t row = 0; row < set.nrow(); ++row) {
    if (!cells.isDefined(row)) continue;
    const auto cell = cells(row).tovector();
    all.insert(all.end(), cell.begin(), cell.end());
  }
  return all;
}

bool has_column(const std::filesystem::path& path, const std::string& column) {
  return casacore::Table(path.string()).tableDesc().isColumn(column);
}

void write_foreign_table(const std::filesystem::path& path) {
  casacore::TableDesc description;
  description.addColumn(casacore::ScalarColumnDesc<double>("TIME"));
  casacore::SetupNewTable setup(path.string(), description, casacore::Table::New);
  casacore::Table table(setup, 3);
  table.flush();
}

}  // namespace mpol::testing
