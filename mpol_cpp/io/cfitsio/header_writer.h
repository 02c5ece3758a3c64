#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <mpol_cpp/io/cfitsio/fits_handle.h>

namespace mpol::io {

/// The current header of an open file, written keyword by keyword. Failures show at the handle's next check.
class HeaderWriter {
 public:
  explicit HeaderWriter(FitsHandle& file) : file_(file) {}

  void set(const char* key, double value, const char* comment);
  /// Characters that no header may hold become '?'.
  void set(const char* key, std::string value, const char* comment);
  void set_if_known(const char* key, const std::string& value, const char* comment);
  void set_logical(const char* key, bool value, const char* comment);
  /// One line for each of the text, long ones wrapped.
  void history(const std::string& lines);
  /// CTYPE, CRPIX, CRVAL, CDELT and CUNIT of an axis. @param unit  null: none
  void axis(int number, const char* type, double reference_pixel, double reference_value, double step, const char* unit);

 private:
  FitsHandle& file_;
};

/// Sums of zero, replaced by write_checksums: the header then has its final length before the data follow it.
void reserve_checksums(FitsHandle& file);
/// The checksums of the current unit. cfitsio's own function would write the time of day beside them.
void write_checksums(FitsHandle& file);

/// A column of a binary table: name, format as TFORM says it, unit or "".
struct FitsColumn {
  const char* name;
  const char* form;
  const char* unit;
};

void create_table(FitsHandle& file, const char* name, std::int64_t rows, const std::vector<FitsColumn>& columns);
/// @param column  from 1; @param row  from 0
void write_number(FitsHandle& file, int column, std::int64_t row, double value);

}  // namespace mpol::io
