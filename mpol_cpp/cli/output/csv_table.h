#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mpol::cli {

/// A table of numbers in a text file: names of the columns in the first line, commas between values.
struct CsvTable {
  std::filesystem::path path;
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;  ///< one per name, all of one length

  bool has(const std::string& name) const;
  /// @throws DataError when there is no such column
  const std::vector<double>& operator[](const std::string& name) const;
  std::size_t rows() const { return columns.front().size(); }
};

/// @throws FileError when the file cannot be read; DataError, naming the line, when it is no such table or has no rows
CsvTable read_csv(const std::filesystem::path& path);

}  // namespace mpol::cli
