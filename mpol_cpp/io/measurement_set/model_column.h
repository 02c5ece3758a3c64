#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <mpol_cpp/io/measurement_set/measurement_set.h>

namespace mpol::io {

/// Where a model goes within a set.
struct ModelColumnOptions {
  std::string model_column;     ///< the model; empty: not written
  std::string residual_column;  ///< data minus model; empty: not written
  MeasurementSetOptions set;    ///< the rows, windows and data column; channels and polarisation do not matter
};

/// Model visibilities at given points, (n) complex64, Jy, in this library's sign convention.
/// @param u, v       (n) wavelengths, float64
/// @param frequency  Hz
using ModelFunction = std::function<Tensor(const Tensor& u, const Tensor& v, double frequency)>;

/// What was written.
struct WrittenColumns {
  std::int64_t rows = 0;             ///< that were selected
  std::vector<std::string> kept_as;  ///< columns that hold what was there before
};

/// Writes a model of Stokes I into columns of a set, at every channel of every selected row, flagged ones too: parallel hands are
/// the model, cross hands 0; a residual is the data minus that. Rows that are not selected are 0 in a new column, and as they
/// were in one that was there.
///
/// All or nothing: values go to columns of their own, which get their names when all of them are on disk; a column that had the
/// name is kept as NAME_PREVIOUS, and taken for the next writing. The set is locked meanwhile.
/// @throws ValueError for DATA, FLOAT_DATA, CORRECTED_DATA, the column that is read, and what is no column of complex values
/// @throws FileError  a set that another program has locked, that cannot be written, or is damaged; it is as it was then
WrittenColumns write_model_columns(const std::filesystem::path& path, const ModelColumnOptions& options,
                                   const ModelFunction& model);

}  // namespace mpol::io
