#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <casacore/tables/Tables/Table.h>

#include <mpol_cpp/io/measurement_set/set_table.h>

namespace mpol::io {

/// The rows of a set that are asked for.
struct SetSelection {
  std::vector<SetPart> parts;           ///< by DATA_DESC_ID, those of the chosen windows
  std::vector<casacore::Table> tables;  ///< their rows
  std::vector<SetField> fields;
  std::int64_t observation = 0;                               ///< the first row's
  double earliest = std::numeric_limits<double>::infinity();  ///< TIME
};

/// @param set  the main table, as open_set gives it
/// @throws ValueError, DataError as open_measurement_set; casacore::AipsError
SetSelection select_rows(const casacore::Table& set, const RowChoice& choice);

/// The column that holds the data, and why it is that.
struct DataColumn {
  std::string name, reason;
};

/// @throws ValueError for a column that is not there, or that was asked for and is empty; DataError without any
DataColumn choose_data_column(const casacore::Table& rows, const std::string& wanted);

}  // namespace mpol::io
