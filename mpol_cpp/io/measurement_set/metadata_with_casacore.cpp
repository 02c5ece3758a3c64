#include <mpol_cpp/io/measurement_set/metadata_casacore.h>

#include <array>
#include <cmath>

#include <casacore/casa/Arrays/Array.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/TableColumn.h>
#include <casacore/tables/Tables/TableDesc.h>
#include <casacore/tables/Tables/TableRecord.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/measurement_set/access_casacore.h>

namespace mpol::io {
namespace {

/// casacore's MFrequency::Types as FITS names them (SPECSYS).
std::string frequency_frame(std::int32_t reference) {
  static constexpr std::array<const char*, 9> frames = {"SOURCE",   "LSRK",     "LSRD",     "BARYCENT", "GEOCENTR",
                                                        "TOPOCENT", "GALACTOC", "LOCALGRP", "CMBDIPOL"};
  const bool known = reference >= 0 && reference < static_cast<std::int32_t>(frames.size());
  return known ? frames[static_cast<std::size_t>(reference)] : std::string();
}

void check_row(const casacore::Table& table, std::int64_t row, const std::string& name) {
  const auto rows = static_cast<std::int64_t>(table.nrow());
  if (row >= 0 && row < rows) return;
  throw DataError(fmt::format("{}: the set names row {} of {}, which has {}; it is incomplete: copy it again", table.tableName(),
                              row, name, rows));
}

template <typename Value>
Value scalar(const casacore::Table& table, const char* column, std::int64_t row) {
  return casacore::ScalarColumn<Value>(table, column)(static_cast<casacore::rownr_t>(row));
}

template <typename Value>
std::vector<Value> values(const casacore::Table& table, const char* column, std::int64_t row) {
  const casacore::ArrayColumn<Value> cells(table, column);
  const auto at = static_cast<casacore::rownr_t>(row);
  return cells.isDefined(at) ? cells(at).tovector() : std::vector<Value>();
}

void check_spectral_window(const DataDescription& description) {
  if (description.frequencies.empty()) {
    throw DataError(fmt::format("spectral window {} has no channels; leave it out (--spw)", description.window));
  }
  for (const double frequency : description.frequencies) {
    if (std::isfinite(frequency) && frequency > 0) continue;
    throw DataError(fmt::format("spectral window {} has a channel at {} Hz; frequencies must be finite and > 0",
                                description.window, frequency));
  }
}

/// The first rest frequency of the field's source. SOURCE may be missing, and lack cells.
std::optional<double> rest_frequency(const casacore::Table& set, std::int64_t source) {
  if (!set.keywordSet().isDefined("SOURCE")) return std::nullopt;
  const auto table = subtable(set, "SOURCE");
  if (!table.tableDesc().isColumn("REST_FREQUENCY") || !table.tableDesc().isColumn("SOURCE_ID")) return std::nullopt;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(table.nrow()); ++row) {
    if (scalar<casacore::Int>(table, "SOURCE_ID", row) != source) continue;
    for (const double frequency : values<double>(table, "REST_FREQUENCY", row)) {
      if (std::isfinite(frequency) && frequency > 0) return frequency;
    }
  }
  return std::nullopt;
}

std::string direction_frame(const casacore::TableColumn& column) {
  const auto& keywords = column.keywordSet();
  if (!keywords.isDefined("MEASINFO")) return "J2000";
  const auto& info = keywords.subRecord("MEASINFO");
  return info.isDefined("Ref") ? std::string(info.asString("Ref")) : "J2000";
}

}  // namespace

DataDescription data_description(const casacore::Table& set, std::int64_t id) {
  const auto descriptions = subtable(set, "DATA_DESCRIPTION");
  check_row(descriptions, id, "DATA_DESCRIPTION");
  DataDescription description;
  description.window = scalar<casacore::Int>(descriptions, "SPECTRAL_WINDOW_ID", id);
  const auto windows = subtable(set, "SPECTRAL_WINDOW");
  check_row(windows, description.window, "SPECTRAL_WINDOW");
  description.frequencies = values<double>(windows, "CHAN_FREQ", description.window);
  const auto widths = values<double>(windows, "CHAN_WIDTH", description.window);
  description.channel_width = widths.empty() ? 0 : std::abs(widths.front());
  description.frame = frequency_frame(scalar<casacore::Int>(windows, "MEAS_FREQ_REF", description.window));
  check_spectral_window(description);
  const auto polarizations = subtable(set, "POLARIZATION");
  const std::int64_t polarization = scalar<casacore::Int>(descriptions, "POLARIZATION_ID", id);
  check_row(polarizations, polarization, "POLARIZATION");
  for (const auto type : values<casacore::Int>(polarizations, "CORR_TYPE", polarization))
    description.correlations.push_back(type);
  return description;
}

SetField field_of(const casacore::Table& set, std::int64_t id, std::int64_t rows) {
  const auto fields = subtable(set, "FIELD");
  check_row(fields, id, "FIELD");
  SetField field;
  field.id = id;
  field.rows = rows;
  field.name = std::string(scalar<casacore::String>(fields, "NAME", id));
  const auto direction = values<double>(fields, "PHASE_DIR", id);  // (2, terms) in Fortran order: the constant term first
  if (direction.size() < 2 || !std::isfinite(direction[0]) || !std::isfinite(direction[1])) {
    throw DataError(fmt::format("field {} ({}) has no phase centre; correct PHASE_DIR of its row in FIELD", id, field.name));
  }
  constexpr double turn = 2 * 3.14159265358979323846;
  field.right_ascension = direction[0] - turn * std::floor(direction[0] / turn);
  field.declination = direction[1];
  field.direction_frame = direction_frame(casacore::TableColumn(fields, "PHASE_DIR"));
  if (fields.tableDesc().isColumn("SOURCE_ID")) {
    field.rest_frequency = rest_frequency(set, scalar<casacore::Int>(fields, "SOURCE_ID", id));
  }
  return field;
}

std::string telescope_of(const casacore::Table& set, std::int64_t observation) {
  const auto table = subtable(set, "OBSERVATION");
  if (observation < 0 || observation >= static_cast<std::int64_t>(table.nrow())) return {};
  return std::string(scalar<casacore::String>(table, "TELESCOPE_NAME", observation));
}

}  // namespace mpol::io
