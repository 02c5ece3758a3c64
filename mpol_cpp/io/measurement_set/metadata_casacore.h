#pragma once

#include <cstdint>
#include <string>

#include <casacore/tables/Tables/Table.h>

#include <mpol_cpp/io/measurement_set/set_table.h>

namespace mpol::io {

/// @throws DataError for ids that the set does not have, or values that cannot be; casacore::AipsError
DataDescription data_description(const casacore::Table& set, std::int64_t id);

/// @param rows  of the field  @throws DataError for an id that the set does not have; casacore::AipsError
SetField field_of(const casacore::Table& set, std::int64_t id, std::int64_t rows);

/// Telescope name of an observation, empty where unknown.
std::string telescope_of(const casacore::Table& set, std::int64_t observation);

}  // namespace mpol::io
