#pragma once

#include <array>
#include <complex>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mpol::testing {

/// A spectral window of a set, with the correlations of its own POLARIZATION row.
struct TestWindow {
  std::vector<double> frequencies;          ///< Hz
  std::vector<int> correlations = {9, 12};  ///< XX, YY
  int frame = 5;                            ///< TOPO
};

struct TestField {
  std::string name;
  double right_ascension = 0, declination = 0;  ///< radian
};

/// A row; arrays are (nchan, ncorr) in C order, or (ncorr).
struct TestRow {
  int window = 0, field = 0, antenna1 = 0, antenna2 = 1, observation = 0;
  int scan = 1;
  std::optional<double> time = std::nullopt;  ///< s after 2012-06-02T05:43:21; unset: as many as there are rows before it
  std::array<double, 3> uvw = {};
  std::vector<std::complex<float>> data, corrected;  ///< no corrected ones: the cell stays empty
  std::vector<bool> flags;                           ///< empty: none
  bool flag_row = false;
  std::vector<float> weight, spectrum, sigma;  ///< empty: the cell stays empty
};

struct TestSet {
  std::vector<TestWindow> windows;
  std::vector<TestField> fields = {{"source", 1.0, -0.5}};
  std::vector<TestRow> rows;
};

/// Writes a small measurement set with casacore's own writer; columns CORRECTED_DATA and WEIGHT_SPECTRUM are there only where a
/// row has values for them.
void write_set(const std::filesystem::path& path, const TestSet& set);

/// The values of a column of complex arrays, one cell after the other in C order; none for a cell that is not defined.
std::vector<std::complex<float>> complex_column(const std::filesystem::path& path, const std::string& column);
bool has_column(const std::filesystem::path& path, const std::string& column);

/// Writes a table of casacore that is no measurement set.
void write_foreign_table(const std::filesystem::path& path);

}  // namespace mpol::testing
