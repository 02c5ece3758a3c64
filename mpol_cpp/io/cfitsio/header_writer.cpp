#include <mpol_cpp/io/cfitsio/header_writer.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

/// Text that a FITS header may hold: printable ASCII.
std::string header_text(std::string text) {
  for (auto& character : text) {
    if (character < ' ' || character > '~') character = '?';
  }
  return text;
}

}  // namespace

void HeaderWriter::set(const char* key, double value, const char* comment) {
  fits_update_key(file_.get(), TDOUBLE, key, &value, comment, file_.status());
}

void HeaderWriter::set(const char* key, std::string value, const char* comment) {
  fits_update_key_str(file_.get(), key, header_text(std::move(value)).c_str(), comment, file_.status());
}

void HeaderWriter::set_if_known(const char* key, const std::string& value, const char* comment) {
  if (!value.empty()) set(key, value, comment);
}

void HeaderWriter::set_logical(const char* key, bool value, const char* comment) {
  fits_update_key_log(file_.get(), key, value ? 1 : 0, comment, file_.status());
}

void HeaderWriter::history(const std::string& lines) {
  std::size_t begin = 0;
  while (begin <= lines.size()) {
    const auto end = std::min(lines.find('\n', begin), lines.size());
    fits_write_history(file_.get(), header_text(lines.substr(begin, end - begin)).c_str(), file_.status());
    begin = end + 1;
  }
}

void HeaderWriter::axis(int number, const char* type, double reference_pixel, double reference_value, double step,
                        const char* unit) {
  const auto key = [&](const char* stem) { return fmt::format("{}{}", stem, number); };
  set(key("CTYPE").c_str(), type, nullptr);
  set(key("CRPIX").c_str(), reference_pixel, nullptr);
  set(key("CRVAL").c_str(), reference_value, nullptr);
  set(key("CDELT").c_str(), step, nullptr);
  if (unit != nullptr) set(key("CUNIT").c_str(), unit, nullptr);
}

void reserve_checksums(FitsHandle& file) {
  HeaderWriter header(file);
  header.set("CHECKSUM", "0000000000000000", "checksum of this header and its data");
  header.set("DATASUM", "0", "checksum of the data");
}

void write_checksums(FitsHandle& file) {
  unsigned long data_sum = 0, unit_sum = 0;
  char encoded[FLEN_VALUE] = "";
  fits_flush_file(file.get(), file.status());  // fills the last block, which counts
  fits_get_chksum(file.get(), &data_sum, &unit_sum, file.status());
  fits_modify_key_str(file.get(), "DATASUM", fmt::format("{}", data_sum).c_str(), "&", file.status());
  fits_get_chksum(file.get(), &data_sum, &unit_sum, file.status());
  constexpr int complement = 1;
  fits_encode_chksum(unit_sum, complement, encoded);
  fits_modify_key_str(file.get(), "CHECKSUM", encoded, "&", file.status());
  file.check("writing the checksums");
}

void create_table(FitsHandle& file, const char* name, std::int64_t rows, const std::vector<FitsColumn>& columns) {
  std::vector<char*> names, forms, units;
  for (const auto& column : columns) {  // cfitsio only reads them
    names.push_back(const_cast<char*>(column.name));
    forms.push_back(const_cast<char*>(column.form));
    units.push_back(const_cast<char*>(column.unit));
  }
  fits_create_tbl(file.get(), BINARY_TBL, rows, static_cast<int>(columns.size()), names.data(), forms.data(), units.data(), name,
                  file.status());
}

void write_number(FitsHandle& file, int column, std::int64_t row, double value) {
  fits_write_col(file.get(), TDOUBLE, column, row + 1, 1, 1, &value, file.status());
}

}  // namespace mpol::io
