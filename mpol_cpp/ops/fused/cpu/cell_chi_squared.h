#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <mpol_cpp/ops/fused/cpu/fused_cells.h>

namespace mpol::ops {

/// chi^2 = sum w |area V - d|^2 of images at cells of their half planes, and its gradient with respect to the images, in three
/// passes: rows to panels of the columns that hold data, columns with the residual while a panel is in the cache, and rows back.
/// Results are bitwise the same for any number of threads and for an image alone or among others.
template <typename T>
class CellChiSquared {
 public:
  /// @param cells      of each channel
  /// @param cell_area  arcsec^2
  /// @throws ValueError unless npix is even
  CellChiSquared(std::vector<ColumnCells<T>> cells, std::int64_t npix, double cell_area);
  ~CellChiSquared();
  CellChiSquared(const CellChiSquared&) = delete;
  CellChiSquared& operator=(const CellChiSquared&) = delete;

  /// One call at a time works; others wait for it.
  /// @param sky       (problems, channels, npix, npix), contiguous
  /// @param gradient  like it; overwritten
  /// @return          one value for each image
  std::vector<double> run(const T* sky, std::int64_t problems, T* gradient);

 private:
  class Passes;
  std::unique_ptr<Passes> passes_;
};

}  // namespace mpol::ops
