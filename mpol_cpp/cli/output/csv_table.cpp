#include <mpol_cpp/cli/output/csv_table.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include <mpol_cpp/cli/program/ending.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

std::vector<std::string> cells_of_line(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  std::vector<std::string> cells;
  std::size_t begin = 0;
  for (auto comma = line.find(','); comma != std::string::npos; comma = line.find(',', begin)) {
    cells.push_back(line.substr(begin, comma - begin));
    begin = comma + 1;
  }
  cells.push_back(line.substr(begin));
  return cells;
}

[[noreturn]] void refuse_table(const std::filesystem::path& path, const std::string& limit) {
  throw DataError(error_text("table", path.string(), limit, "give a .csv file as mpol writes it"));
}

double cell_value(const std::string& cell, const std::filesystem::path& path, std::size_t line) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size())
    refuse_table(path, fmt::format("line {}: '{}' is no number", line, cell.substr(0, 40)));
  return value;
}

}  // namespace

bool CsvTable::has(const std::string& name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

const std::vector<double>& CsvTable::operator[](const std::string& name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) refuse_table(path, fmt::format("has no column '{}'", name));
  return columns[static_cast<std::size_t>(found - names.begin())];
}

CsvTable read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  if (std::filesystem::is_directory(path) || !file) {
    throw FileError(error_text("table", path.string(), "cannot be read", "check the path"));
  }
  if (!std::getline(file, line)) refuse_table(path, "is empty");
  constexpr std::ptrdiff_t most_columns = 1 << 14;  // each takes many times the comma it is made of
  if (std::count(line.begin(), line.end(), ',') >= most_columns)
    refuse_table(path, fmt::format("has more than {} columns", most_columns));
  CsvTable table{.path = path, .names = cells_of_line(line), .columns = {}};
  table.columns.resize(table.names.size());
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    if (line.empty() || line == "\r") continue;
    const auto cells = cells_of_line(line);
    if (cells.size() != table.names.size())
      refuse_table(path, fmt::format("line {} has {} values, the first line {} names", number, cells.size(), table.names.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].push_back(cell_value(cells[i], path, number));
  }
  if (table.rows() == 0) refuse_table(path, "holds no values");
  return table;
}

}  // namespace mpol::cli
