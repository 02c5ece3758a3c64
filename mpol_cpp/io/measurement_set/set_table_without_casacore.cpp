#include <mpol_cpp/io/measurement_set/set_table.h>

#include <cstdlib>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::io {

bool has_casacore() { return false; }
std::string casacore_version() { return {}; }

struct SetTable::Impl {};

SetTable::SetTable(const std::filesystem::path& path, const RowChoice&) {
  throw FileError(
      fmt::format("{}: is a measurement set, which this build does not read; build it with casacore (casacore-dev, "
                  "-DMPOL_WITH_CASACORE=ON), or export the set to .npz elsewhere",
                  path.string()));
}
SetTable::~SetTable() = default;

// No object is ever made.
const std::vector<SetPart>& SetTable::parts() const { std::abort(); }
const std::vector<SetField>& SetTable::fields() const { std::abort(); }
std::string SetTable::column() const { std::abort(); }
std::string SetTable::column_reason() const { std::abort(); }
std::string SetTable::telescope() const { std::abort(); }
double SetTable::earliest() const { std::abort(); }
const SetCells& SetTable::read(std::size_t, std::int64_t, std::int64_t) { std::abort(); }

}  // namespace mpol::io
