#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/cli/output/output_folder.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/io/fits_cube.h>

namespace mpol::cli {

/// The channels that a figure of a cube shows, picked up as the blocks of the cube come by.
class ShownChannels {
 public:
  /// @param nchan  channels of the cube
  explicit ShownChannels(std::int64_t nchan);

  /// Picks from the channels [begin, begin + n). @param sky_cube  (n, npix, npix)
  void add(std::int64_t begin, const Tensor& sky_cube);
  /// Writes the figure. @param header  of the whole cube
  void write(const std::filesystem::path& path, const GridCoords& coords, const io::FitsOptions& header) const;

 private:
  std::int64_t nchan_;
  std::vector<std::int64_t> shown_;
  std::vector<Tensor> maps_;
};

/// NAME.fits and NAME.png of a cube that is made block by block; of its pixels those of the figure alone are kept.
class CubeFiles {
 public:
  /// @param name    of the files in the folder, which must outlive this
  /// @param header  of the cube's nchan channels
  CubeFiles(OutputFolder& folder, std::string name, const GridCoords& coords, std::int64_t nchan, io::FitsOptions header);

  /// Takes the channels from `begin` on, which must be the next. @param sky_cube  (n, npix, npix)
  void add(std::int64_t begin, const Tensor& sky_cube);
  /// Ends both files.
  void finish();

 private:
  OutputFolder& folder_;
  std::string name_;
  GridCoords coords_;
  io::FitsOptions header_;
  io::FitsCubeWriter fits_;
  ShownChannels shown_;
};

}  // namespace mpol::cli
