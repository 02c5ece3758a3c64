#include <mpol_cpp/io/measurement_set/selection_casacore.h>

#include <algorithm>
#include <map>
#include <utility>

#include <casacore/casa/Arrays/Vector.h>
#include <casacore/casa/Arrays/Slicer.h>
#include <casacore/tables/TaQL/ExprNode.h>
#include <casacore/tables/TaQL/TableParse.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/TableColumn.h>
#include <casacore/tables/Tables/TableDesc.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/measurement_set/metadata_casacore.h>

namespace mpol::io {
namespace {

casacore::Table matching_rows(const casacore::Table& set, const std::string& expression) {
  if (expression.empty()) return set;
  try {
    return casacore::tableCommand("SELECT FROM $1 WHERE " + expression, set).table();
  } catch (const casacore::AipsError& error) {
    std::string words = error.what();
    std::replace(words.begin(), words.end(), '\n', ' ');
    throw ValueError(
        fmt::format("--select: {}; casacore cannot follow it: {}; write a TaQL condition on the main table, such as "
                    "\"FIELD_ID == 0\"",
                    expression, words));
  }
}

/// What one pass over the small columns of the chosen rows shows.
struct RowCounts {
  std::map<std::int64_t, std::int64_t> descriptions, fields;
  std::int64_t observation = 0;
  double earliest = std::numeric_limits<double>::infinity();
};

bool contains(const std::vector<std::int64_t>& list, std::int64_t wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

/// Calls `use` with (first row, count) of blocks of a table's rows.
template <typename Use>
void for_each_block(const casacore::Table& table, std::int64_t block, const Use& use) {
  const auto rows = static_cast<std::int64_t>(table.nrow());
  for (std::int64_t begin = 0; begin < rows; begin += block) use(begin, std::min(block, rows - begin));
}

RowCounts count_rows(const casacore::Table& rows) {
  RowCounts counts;
  const casacore::ScalarColumn<casacore::Int> descriptions(rows, "DATA_DESC_ID"), fields(rows, "FIELD_ID");
  const casacore::ScalarColumn<double> times(rows, "TIME");
  casacore::Vector<casacore::Int> of_description, of_field;
  casacore::Vector<double> of_time;
  for_each_block(rows, std::int64_t{1} << 18, [&](std::int64_t begin, std::int64_t count) {
    const casacore::Slicer range(casacore::IPosition(1, begin), casacore::IPosition(1, count));
    descriptions.getColumnRange(range, of_description, /*resize=*/true);
    fields.getColumnRange(range, of_field, /*resize=*/true);
    times.getColumnRange(range, of_time, /*resize=*/true);
    for (std::int64_t i = 0; i < count;) {  // runs of the same ids are long, or all of length one
      const auto description = of_description.data()[i], field = of_field.data()[i];
      const auto first = i;
      for (; i < count && of_description.data()[i] == description && of_field.data()[i] == field; ++i) {
        counts.earliest = std::min(counts.earliest, of_time.data()[i]);
      }
      counts.descriptions[description] += i - first;
      counts.fields[field] += i - first;
    }
  });
  counts.observation = casacore::ScalarColumn<casacore::Int>(rows, "OBSERVATION_ID")(0);
  return counts;
}

}  // namespace

SetSelection select_rows(const casacore::Table& set, const RowChoice& choice) {
  const auto rows = matching_rows(set, choice.select);
  if (rows.nrow() == 0) {
    throw DataError(choice.select.empty() ? "the set has no rows; name another one"
                                          : fmt::format("no row of the set fulfils {}; correct --select", choice.select));
  }
  auto counts = count_rows(rows);
  SetSelection selection;
  std::vector<std::int64_t> there;
  std::map<std::int64_t, std::int64_t> fields;  // of the chosen windows: others do not matter
  for (const auto& [id, count] : counts.descriptions) {
    auto description = data_description(set, id);
    there.push_back(description.window);
    if (!choice.windows.empty() && !contains(choice.windows, description.window)) continue;
    const auto part = counts.descriptions.size() == 1 ? rows : rows(rows.col("DATA_DESC_ID") == static_cast<casacore::Int>(id));
    if (!choice.windows.empty()) {
      for (const auto& [field, of_field] : count_rows(part).fields) fields[field] += of_field;
    }
    selection.parts.push_back({count, std::move(description)});
    selection.tables.push_back(part);
  }
  for (const auto window : choice.windows) {
    if (contains(there, window)) continue;
    throw ValueError(
        fmt::format("--spw: {}; the selected rows are of spectral windows {}; correct it", window, fmt::join(there, ", ")));
  }
  for (const auto& [id, count] : choice.windows.empty() ? counts.fields : fields)
    selection.fields.push_back(field_of(set, id, count));
  selection.observation = counts.observation;
  selection.earliest = counts.earliest;
  return selection;
}

DataColumn choose_data_column(const casacore::Table& rows, const std::string& wanted) {
  const auto there = [&](const std::string& name) { return rows.tableDesc().isColumn(name); };
  const auto filled = [&](const std::string& name) { return there(name) && casacore::TableColumn(rows, name).isDefined(0); };
  const auto is_complex = [&](const std::string& name) {
    return rows.tableDesc().columnDesc(name).dataType() == casacore::TpComplex && rows.tableDesc().columnDesc(name).isArray();
  };
  if (!wanted.empty()) {
    if (there(wanted) && !is_complex(wanted)) {
      throw ValueError(fmt::format("column {}; it does not hold complex visibilities; name another one", wanted));
    }
    if (filled(wanted)) return {wanted, "as asked for"};
    throw ValueError(fmt::format("column {}; the set {}; name another one", wanted,
                                 there(wanted) ? "has it, but without values" : "does not have it"));
  }
  if (filled("CORRECTED_DATA") && is_complex("CORRECTED_DATA")) {
    return {"CORRECTED_DATA", filled("DATA") ? "there beside DATA" : "there without DATA"};
  }
  if (filled("DATA") && is_complex("DATA"))
    return {"DATA", there("CORRECTED_DATA") ? "CORRECTED_DATA is empty" : "there is no CORRECTED_DATA"};
  throw DataError(there("FLOAT_DATA") ? "the set has FLOAT_DATA, of a single dish, and no visibilities; name another set"
                                      : "the set has neither CORRECTED_DATA nor DATA; name its column (--column)");
}

}  // namespace mpol::io
