#include <mpol_cpp/io/measurement_set/set_table.h>

#include <casacore/casa/version.h>

#include <mpol_cpp/io/measurement_set/access_casacore.h>
#include <mpol_cpp/io/measurement_set/metadata_casacore.h>
#include <mpol_cpp/io/measurement_set/selection_casacore.h>
#include <mpol_cpp/io/measurement_set/window_rows_casacore.h>

namespace mpol::io {

bool has_casacore() { return true; }
std::string casacore_version() { return CASACORE_VERSION; }

struct SetTable::Impl {
  Impl(const std::filesystem::path& folder, const RowChoice& choice) : path(folder), tracks(choice.tracks) {
    with_table_errors(path, [&] {
      const auto set = open_set(path, SetAccess::reading);
      selection = select_rows(set, choice);
      column = choose_data_column(selection.tables.front(), choice.column);
      telescope = telescope_of(set, selection.observation);
    });
  }

  const SetCells& read(std::size_t part, std::int64_t begin, std::int64_t count) {
    auto& [arrays, cells] = blocks[turn];
    turn = 1 - turn;
    if (!rows || part != open_part) {
      const auto& shape = selection.parts[part];
      rows = std::make_unique<WindowRows>(selection.tables[part], column.name, shape.ncorr(), shape.nchan());
      open_part = part;
    }
    rows->read(begin, count, arrays);
    if (tracks == RowTracks::read) rows->read_tracks(begin, count, arrays);
    cells = arrays.view(count);
    return cells;
  }

  struct Block {
    CellArrays arrays;
    SetCells cells;
  };

  std::filesystem::path path;
  RowTracks tracks;
  SetSelection selection;
  DataColumn column;
  std::string telescope;
  std::unique_ptr<WindowRows> rows;
  std::size_t open_part = 0;
  Block blocks[2];
  std::size_t turn = 0;
};

SetTable::SetTable(const std::filesystem::path& path, const RowChoice& choice) : impl_(std::make_unique<Impl>(path, choice)) {}
SetTable::~SetTable() = default;

const std::vector<SetPart>& SetTable::parts() const { return impl_->selection.parts; }
const std::vector<SetField>& SetTable::fields() const { return impl_->selection.fields; }
std::string SetTable::column() const { return impl_->column.name; }
std::string SetTable::column_reason() const { return impl_->column.reason; }
std::string SetTable::telescope() const { return impl_->telescope; }
double SetTable::earliest() const { return impl_->selection.earliest; }

const SetCells& SetTable::read(std::size_t part, std::int64_t begin, std::int64_t count) {
  return *with_table_errors(impl_->path, [&] { return &impl_->read(part, begin, count); });
}

}  // namespace mpol::io
