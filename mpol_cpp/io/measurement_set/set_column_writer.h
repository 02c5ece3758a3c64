#pragma once

#include <complex>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/io/measurement_set/set_table.h>

namespace mpol::io {

/// New columns of complex values in a set, which get their names only when all is written: the one place through which casacore
/// writes. Without commit() the set is as it was.
class SetColumnWriter {
 public:
  /// Locks the set, and makes columns to write into. @param names  those that they will have; their order counts in write()
  /// @throws ValueError for a column that must not be written; FileError as write_model_columns; as SetTable
  SetColumnWriter(const std::filesystem::path& path, const RowChoice& choice, const std::vector<std::string>& names);
  ~SetColumnWriter();
  SetColumnWriter(const SetColumnWriter&) = delete;
  SetColumnWriter& operator=(const SetColumnWriter&) = delete;

  const std::vector<SetPart>& parts() const;
  const SetCells& read(std::size_t part, std::int64_t begin, std::int64_t count);
  /// Rows [begin, begin + count) of a part. @param values  (count, nchan, ncorr)
  void write(std::size_t column, std::size_t part, std::int64_t begin, std::int64_t count, const std::complex<float>* values);
  /// Flushes everything to disk and gives the columns their names. @returns names under which earlier columns are kept
  std::vector<std::string> commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mpol::io
