#pragma once

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>

#include <casacore/casa/Exceptions/Error.h>
#include <casacore/tables/Tables/Table.h>

#include <mpol_cpp/core/error.h>

namespace mpol::io {

/// Whether a set is only read, or locked for writing.
enum class SetAccess { reading, writing };

/// Opens a set's main table. What lacks the columns and subtables of a measurement set is refused.
/// @throws FileError, DataError
casacore::Table open_set(const std::filesystem::path& path, SetAccess access);

/// A subtable, which open_set found. @throws casacore::AipsError
casacore::Table subtable(const casacore::Table& set, const std::string& name);

/// "PATH: is damaged or …: WHAT; remedy", in one line. @param what  casacore's words
FileError table_error(const std::filesystem::path& path, const std::string& what);

/// Does `action` and turns what casacore throws into our errors: a damaged table may show itself at any access.
template <typename Action>
auto with_table_errors(const std::filesystem::path& path, const Action& action) {
  try {
    return action();
  } catch (const Error&) {
    throw;
  } catch (const casacore::AipsError& error) {
    throw table_error(path, error.what());
  } catch (const std::bad_alloc&) {
    throw table_error(path, "more memory is asked for than there is");
  } catch (const std::length_error& error) {
    throw table_error(path, error.what());
  }
}

}  // namespace mpol::io
