#include <mpol_cpp/io/readers/visibility_reader.h>

namespace mpol::io {

std::int64_t ReaderShape::samples() const {
  std::int64_t count = 0;
  for (const auto& window : windows) count += window.rows * window.nchan();
  return count;
}

std::int64_t DroppedSamples::total() const {
  return flagged_rows + autocorrelations + flagged + without_weight + not_finite + incomplete_rows;
}

}  // namespace mpol::io
