#include <mpol_cpp/io/measurement_set/set_column_writer.h>

#include <algorithm>
#include <utility>

#include <casacore/casa/Arrays/Array.h>
#include <casacore/casa/Arrays/IPosition.h>
#include <casacore/tables/DataMan/TiledShapeStMan.h>
#include <casacore/tables/Tables/ArrColDesc.h>
#include <casacore/casa/Containers/Record.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/TableDesc.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/measurement_set/access_casacore.h>
#include <mpol_cpp/io/measurement_set/selection_casacore.h>
#include <mpol_cpp/io/measurement_set/window_rows_casacore.h>

namespace mpol::io {
namespace {

using Complex = std::complex<float>;

/// Columns of the standard that are no models.
const std::vector<std::string>& protected_columns() {
  static const std::vector<std::string> names = {
      "DATA", "FLOAT_DATA", "CORRECTED_DATA", "LAG_DATA", "WEIGHT_SPECTRUM", "SIGMA_SPECTRUM", "FLAG_CATEGORY", "VIDEO_POINT"};
  return names;
}

void check_name(const casacore::Table& set, const std::string& name, const std::string& read) {
  const auto refuse = [&](const std::string& why) {
    throw ValueError(fmt::format("column {}; {}; write to another one, such as MODEL_DATA", name, why));
  };
  const auto& names = protected_columns();
  if (std::find(names.begin(), names.end(), name) != names.end()) refuse("it holds what was observed, and is never written");
  if (name == read) refuse("the data are read from it");
  const char* letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  if (name.find_first_not_of(letters) != std::string::npos || (name[0] >= '0' && name[0] <= '9')) {
    refuse("a name must be of letters, digits and _");
  }
  if (!set.tableDesc().isColumn(name)) return;
  const auto& column = set.tableDesc().columnDesc(name);
  if (column.dataType() != casacore::TpComplex || !column.isArray()) refuse("it is there and holds no complex visibilities");
}

std::string unfinished(const std::string& name) { return name + "_UNFINISHED"; }
std::string previous(const std::string& name) { return name + "_PREVIOUS"; }

/// A name that no storage manager of the table has: columns change their names, managers do not.
std::string unused_manager_name(const casacore::Table& set, const std::string& column) {
  const auto managers = set.dataManagerInfo();
  for (int number = 1;; ++number) {
    const auto name = fmt::format("{}_tiles_{}", column, number);
    bool used = false;
    for (casacore::uInt i = 0; i < managers.nfields(); ++i)
      used = used || managers.subRecord(i).asString("NAME") == casacore::String(name);
    if (!used) return name;
  }
}

/// A column with files of its own, in tiles of 2^17 values: nothing that the set holds is written over.
void add_column(casacore::Table& set, const std::string& name, std::int64_t ncorr, std::int64_t nchan) {
  const auto rows = std::max<std::int64_t>(1, (std::int64_t{1} << 17) / (ncorr * nchan));
  const casacore::TiledShapeStMan tiles(unused_manager_name(set, name), casacore::IPosition(3, ncorr, nchan, rows));
  set.addColumn(casacore::ArrayColumnDesc<Complex>(name, 2), tiles);
}

}  // namespace

struct SetColumnWriter::Impl {
  Impl(const std::filesystem::path& folder, const RowChoice& choice, std::vector<std::string> columns)
      : path(folder), names(std::move(columns)), set(open_set(folder, SetAccess::writing)) {
    column = choose_data_column(set, choice.column);
    for (const auto& name : names) check_name(set, name, column.name);
    try {
      make_columns();
      selection = select_rows(set, choice);  // after the columns, which tables of selected rows must know
      if (!choice.select.empty() || !choice.windows.empty()) fill_other_rows();
    } catch (...) {
      discard();
      throw;
    }
  }
  ~Impl() {
    if (!committed) discard();
  }

  void make_columns() {
    const auto all = select_rows(set, {});
    const auto& shape = all.parts.front();
    for (const auto& name : names) {
      const auto there = [&](const std::string& other) { return set.tableDesc().isColumn(other); };
      if (there(unfinished(name))) set.removeColumn(unfinished(name));  // of a writer that was killed
      if (there(name) && there(previous(name))) {
        set.renameColumn(unfinished(name), previous(name));
      } else {
        add_column(set, unfinished(name), shape.ncorr(), shape.nchan());
      }
    }
  }

  /// Rows that are not selected keep their values, or are 0.
  void fill_other_rows() {
    const auto all = select_rows(set, {});
    for (std::size_t part = 0; part < all.parts.size(); ++part) {
      for (const auto& name : names) {
        const casacore::IPosition cell(2, all.parts[part].ncorr(), all.parts[part].nchan());
        const bool has_old = set.tableDesc().isColumn(name);
        casacore::ArrayColumn<Complex> fresh(all.tables[part], unfinished(name)), old;
        if (has_old) old.attach(all.tables[part], name);
        const casacore::Array<Complex> zeros(cell, Complex());
        for (casacore::rownr_t row = 0; row < all.tables[part].nrow(); ++row) {
          const bool keeps = has_old && old.isDefined(row) && old.shape(row).isEqual(cell);
          fresh.put(row, keeps ? old(row) : zeros);
        }
      }
    }
  }

  void write(std::size_t index, std::size_t part, std::int64_t begin, std::int64_t count, const Complex* values) {
    const auto& shape = selection.parts[part];
    casacore::ArrayColumn<Complex> written(selection.tables[part], unfinished(names[index]));
    // casacore takes arrays that may be written to, but only reads from this one.
    const casacore::Array<Complex> array(casacore::IPosition(3, shape.ncorr(), shape.nchan(), count),
                                         const_cast<Complex*>(values), casacore::SHARE);
    written.putColumnRange(row_range(begin, count), array);
  }

  std::vector<std::string> commit() {
    selection = {};
    rows.reset();
    set.flush(/*fsync=*/true);
    std::vector<std::string> kept;
    for (const auto& name : names) {
      if (set.tableDesc().isColumn(name)) {
        set.renameColumn(previous(name), name);
        kept.push_back(previous(name));
      }
      set.renameColumn(name, unfinished(name));
    }
    set.flush(/*fsync=*/true);
    committed = true;
    set.unlock();
    return kept;
  }

  void discard() noexcept {
    try {
      selection = {};
      rows.reset();
      for (const auto& name : names) {
        if (set.tableDesc().isColumn(unfinished(name))) set.removeColumn(unfinished(name));
      }
      set.flush();
    } catch (const std::exception&) {  // what is left has a name that nobody reads, and is removed by the next writer
    }
  }

  std::filesystem::path path;
  std::vector<std::string> names;
  casacore::Table set;
  DataColumn column;
  SetSelection selection;
  std::unique_ptr<WindowRows> rows;
  std::size_t open_part = 0;
  CellArrays arrays;
  SetCells cells;
  bool committed = false;
};

SetColumnWriter::SetColumnWriter(const std::filesystem::path& path, const RowChoice& choice,
                                 const std::vector<std::string>& names)
    : impl_(with_table_errors(path, [&] { return std::make_unique<Impl>(path, choice, names); })) {}
SetColumnWriter::~SetColumnWriter() = default;

const std::vector<SetPart>& SetColumnWriter::parts() const { return impl_->selection.parts; }

const SetCells& SetColumnWriter::read(std::size_t part, std::int64_t begin, std::int64_t count) {
  with_table_errors(impl_->path, [&] {
    if (!impl_->rows || impl_->open_part != part) {
      const auto& shape = impl_->selection.parts[part];
      impl_->rows = std::make_unique<WindowRows>(impl_->selection.tables[part], impl_->column.name, shape.ncorr(), shape.nchan());
      impl_->open_part = part;
    }
    impl_->rows->read(begin, count, impl_->arrays);
    impl_->cells = impl_->arrays.view(count);
  });
  return impl_->cells;
}

void SetColumnWriter::write(std::size_t column, std::size_t part, std::int64_t begin, std::int64_t count,
                            const std::complex<float>* values) {
  with_table_errors(impl_->path, [&] { impl_->write(column, part, begin, count, values); });
}

std::vector<std::string> SetColumnWriter::commit() {
  return with_table_errors(impl_->path, [&] { return impl_->commit(); });
}

}  // namespace mpol::io
