#include <mpol_cpp/io/measurement_set/set_column_writer.h>

#include <cstdlib>

namespace mpol::io {

struct SetColumnWriter::Impl {};

SetColumnWriter::SetColumnWriter(const std::filesystem::path& path, const RowChoice& choice, const std::vector<std::string>&) {
  const SetTable refused(path, choice);  // which this build does not read
}
SetColumnWriter::~SetColumnWriter() = default;

// No object is ever made.
const std::vector<SetPart>& SetColumnWriter::parts() const { std::abort(); }
const SetCells& SetColumnWriter::read(std::size_t, std::int64_t, std::int64_t) { std::abort(); }
void SetColumnWriter::write(std::size_t, std::size_t, std::int64_t, std::int64_t, const std::complex<float>*) { std::abort(); }
std::vector<std::string> SetColumnWriter::commit() { std::abort(); }

}  // namespace mpol::io
