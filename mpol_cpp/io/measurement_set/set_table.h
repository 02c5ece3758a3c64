#pragma once

#include <complex>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/io/readers/row_tracks.h>

namespace mpol::io {

/// What one DATA_DESC_ID stands for.
struct DataDescription {
  std::int64_t window = 0;                 ///< SPECTRAL_WINDOW_ID
  std::vector<double> frequencies;         ///< CHAN_FREQ, Hz, > 0
  double channel_width = 0;                ///< |CHAN_WIDTH| of the first channel, Hz
  std::string frame;                       ///< MEAS_FREQ_REF, as FITS names it; empty: undefined
  std::vector<std::int32_t> correlations;  ///< CORR_TYPE
};

/// Rows of one DATA_DESC_ID, whose cells have one shape.
struct SetPart {
  std::int64_t rows = 0;
  DataDescription description;

  std::int64_t ncorr() const { return static_cast<std::int64_t>(description.correlations.size()); }
  std::int64_t nchan() const { return static_cast<std::int64_t>(description.frequencies.size()); }
};

/// A field that rows belong to.
struct SetField {
  std::int64_t id = 0, rows = 0;
  std::string name;
  double right_ascension = 0, declination = 0;  ///< PHASE_DIR, radian, in [0, 2 pi) and [-pi/2, pi/2]
  std::string direction_frame;                  ///< J2000, ICRS, …
  std::optional<double> rest_frequency;         ///< of its source, Hz
};

/// Which rows of a set are wanted, and which column holds their data.
struct RowChoice {
  std::string select;                 ///< TaQL; empty: all
  std::string column;                 ///< empty: CORRECTED_DATA where it is filled, else DATA
  std::vector<std::int64_t> windows;  ///< ids of spectral windows; empty: all
  RowTracks tracks = RowTracks::leave;
};

/// A block of rows as the set has them: arrays in C order, valid until the block after the next is read.
struct SetCells {
  std::int64_t rows = 0;
  const std::complex<float>* data = nullptr;  ///< (rows, nchan, ncorr)
  const bool* flags = nullptr;                ///< (rows, nchan, ncorr)
  const float* weights = nullptr;             ///< (rows, nchan, ncorr) or (rows, ncorr)
  bool weights_by_channel = false;
  const double* uvw = nullptr;                                                           ///< (rows, 3), m
  const std::int32_t *antenna1 = nullptr, *antenna2 = nullptr, *observations = nullptr;  ///< (rows)
  const bool* flag_row = nullptr;                                                        ///< (rows)
  const double* times = nullptr;                                                         ///< (rows), s; null unless wanted
  const std::int32_t *fields = nullptr, *scans = nullptr;  ///< (rows); null unless wanted, or no such column
};

/// The chosen rows of a measurement set, by DATA_DESC_ID; the one place through which casacore reads. Nothing of casacore shows
/// here: its headers are not for C++20 (3.5).
class SetTable {
 public:
  /// Opens for reading without a lock. @throws as open_measurement_set
  SetTable(const std::filesystem::path& path, const RowChoice& choice);
  ~SetTable();
  SetTable(const SetTable&) = delete;
  SetTable& operator=(const SetTable&) = delete;

  const std::vector<SetPart>& parts() const;
  const std::vector<SetField>& fields() const;  ///< those of the rows
  std::string column() const;                   ///< that holds the data
  std::string column_reason() const;
  std::string telescope() const;  ///< of the first row; empty: unknown
  double earliest() const;        ///< TIME, seconds of the modified Julian date

  /// Rows [begin, begin + count) of a part. Weights are WEIGHT_SPECTRUM, WEIGHT, or 1/SIGMA^2, and 0 where the row has none.
  /// Another thread may call it while this one looks at the block before; never two at once.
  /// @throws FileError, DataError for a damaged or inconsistent set
  const SetCells& read(std::size_t part, std::int64_t begin, std::int64_t count);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether this build has casacore, without which no SetTable can be made.
bool has_casacore();
/// The version of casacore that this build was made with; empty without.
std::string casacore_version();

}  // namespace mpol::io
