#include <mpol_cpp/io/measurement_set/access_casacore.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <mutex>

#include <casacore/casa/Logging/LogSink.h>
#include <casacore/casa/Logging/NullLogSink.h>
#include <casacore/tables/Tables/TableDesc.h>
#include <casacore/tables/Tables/TableLock.h>
#include <casacore/tables/Tables/TableRecord.h>

#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

constexpr std::initializer_list<const char*> needed_columns = {
    "UVW", "ANTENNA1", "ANTENNA2", "DATA_DESC_ID", "FIELD_ID", "OBSERVATION_ID", "TIME", "FLAG", "FLAG_ROW"};
constexpr std::initializer_list<const char*> needed_subtables = {"DATA_DESCRIPTION", "FIELD", "OBSERVATION", "POLARIZATION",
                                                                 "SPECTRAL_WINDOW"};

/// casacore says on stdout and stderr what its exceptions say too.
void silence_casacore() {
  static std::once_flag once;
  std::call_once(once, [] {
    casacore::LogSinkInterface* sink = new casacore::NullLogSink;  // which is taken over
    casacore::LogSink::globalSink(sink);
  });
}

void check_is_set(const casacore::Table& table, const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& missing) {
    throw DataError(fmt::format("{}: is a table of casacore, but no measurement set: it has no {}; name the set's own folder",
                                path.string(), missing));
  };
  for (const auto* column : needed_columns) {
    if (!table.tableDesc().isColumn(column)) refuse(fmt::format("column {}", column));
  }
  for (const auto* name : needed_subtables) {
    if (!table.keywordSet().isDefined(name)) refuse(fmt::format("subtable {}", name));
  }
}

}  // namespace

FileError table_error(const std::filesystem::path& path, const std::string& what) {
  auto words = what;
  std::replace(words.begin(), words.end(), '\n', ' ');
  const bool compressed = words.find("Dysco") != std::string::npos;
  return FileError(fmt::format("{}: cannot be read as a measurement set: {}; {}", path.string(), words,
                               compressed ? "its data are compressed by Dysco: write them uncompressed with DP3 or mstransform"
                                          : "it is damaged or incomplete: copy it again"));
}

casacore::Table open_set(const std::filesystem::path& path, SetAccess access) {
  silence_casacore();
  if (!std::filesystem::exists(path)) throw FileError(fmt::format("{}: is not there; check the path", path.string()));
  return with_table_errors(path, [&] {
    using casacore::Table;
    using casacore::TableLock;
    const bool writes = access == SetAccess::writing;
    // Without a lock for reading: a program that writes must neither wait for us nor we for it.
    const TableLock lock(writes ? TableLock::PermanentLocking : TableLock::UserNoReadLocking);
    if (writes && !Table::isWritable(path.string())) {
      throw FileError(fmt::format("{}: cannot be written; a copy of your own can", path.string()));
    }
    try {
      Table table(path.string(), lock, writes ? Table::Update : Table::Old);
      check_is_set(table, path);
      return table;
    } catch (const casacore::AipsError& error) {
      const std::string what = error.what();
      if (!writes || what.find("lock") == std::string::npos) throw;
      throw FileError(fmt::format("{}: is locked by another program; wait until that has ended", path.string()));
    }
  });
}

casacore::Table subtable(const casacore::Table& set, const std::string& name) {
  return set.keywordSet().asTable(name, casacore::TableLock(casacore::TableLock::UserNoReadLocking));
}

}  // namespace mpol::io
