#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include <casacore/casa/Arrays/Array.h>
#include <casacore/casa/Arrays/Slicer.h>
#include <casacore/casa/Arrays/Vector.h>
#include <casacore/tables/Tables/ArrayColumn.h>
#include <casacore/tables/Tables/ScalarColumn.h>
#include <casacore/tables/Tables/Table.h>

#include <mpol_cpp/io/measurement_set/set_table.h>

namespace mpol::io {

/// The arrays of a block of rows.
struct CellArrays {
  casacore::Array<std::complex<float>> data;  // (ncorr, nchan, rows)
  casacore::Array<casacore::Bool> flags;      // (ncorr, nchan, rows)
  casacore::Array<float> weights;             // (ncorr, nchan, rows), or (ncorr, rows)
  bool weights_by_channel = false;
  casacore::Array<double> uvw;  // (3, rows)
  casacore::Vector<casacore::Int> antenna1, antenna2, observations;
  casacore::Vector<casacore::Bool> flag_row;
  casacore::Vector<double> times;
  casacore::Vector<casacore::Int> fields, scans;

  SetCells view(std::int64_t rows) const;
};

/// Rows of one DATA_DESC_ID, read in blocks.
class WindowRows {
 public:
  /// @throws DataError when cells have another shape; casacore::AipsError
  WindowRows(const casacore::Table& rows, const std::string& data_column, std::int64_t ncorr, std::int64_t nchan);

  /// @throws DataError when the cells of a row do not go together; casacore::AipsError
  void read(std::int64_t begin, std::int64_t count, CellArrays& cells) const;
  /// Times, fields and scans of the same rows. @throws casacore::AipsError
  void read_tracks(std::int64_t begin, std::int64_t count, CellArrays& cells) const;

 private:
  void read_weights(std::int64_t begin, std::int64_t count, CellArrays& cells) const;
  void read_row_by_row(std::int64_t begin, std::int64_t count, casacore::Array<float>& weights) const;
  void fill_spectrum(std::int64_t row, const float* of_row, float* spectrum) const;
  void check_shapes(const CellArrays& cells, std::int64_t count) const;

  casacore::Table rows_;
  std::int64_t ncorr_, nchan_;
  casacore::ArrayColumn<std::complex<float>> data_;
  casacore::ArrayColumn<casacore::Bool> flags_;
  casacore::ArrayColumn<double> uvw_;
  casacore::ArrayColumn<float> spectrum_, weight_, sigma_;
  casacore::ScalarColumn<casacore::Int> antenna1_, antenna2_, observation_;
  casacore::ScalarColumn<casacore::Bool> flag_row_;
};

/// Rows [begin, begin + count), as casacore names them.
casacore::Slicer row_range(std::int64_t begin, std::int64_t count);

}  // namespace mpol::io
