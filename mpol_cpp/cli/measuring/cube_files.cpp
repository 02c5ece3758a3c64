#include <mpol_cpp/cli/measuring/cube_files.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/stack.h>

#include <mpol_cpp/cli/options/figure_options.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/plot/figures/image_figure.h>

namespace mpol::cli {

ShownChannels::ShownChannels(std::int64_t nchan)
    : nchan_(nchan), shown_(plot::shown_channels(nchan, plot::ImageFigureOptions().max_channels)) {}

void ShownChannels::add(std::int64_t begin, const Tensor& sky_cube) {
  for (std::int64_t i = 0; i < sky_cube.size(0); ++i)
    if (std::binary_search(shown_.begin(), shown_.end(), begin + i)) maps_.push_back(sky_cube[i].clone());
}

void ShownChannels::write(const std::filesystem::path& path, const GridCoords& coords, const io::FitsOptions& header) const {
  auto figure = figure_options(header, nchan_);
  figure.channels = shown_;
  figure.nchan = nchan_;
  plot::write_figure(path, plot::image_page(at::stack(maps_), coords, figure));
}

CubeFiles::CubeFiles(OutputFolder& folder, std::string name, const GridCoords& coords, std::int64_t nchan, io::FitsOptions header)
    : folder_(folder),
      name_(std::move(name)),
      coords_(coords),
      header_(std::move(header)),
      fits_(folder.staged(name_ + ".fits"), coords, nchan, header_),
      shown_(nchan) {}

void CubeFiles::add(std::int64_t begin, const Tensor& sky_cube) {
  fits_.add(sky_cube);
  shown_.add(begin, sky_cube);
}

void CubeFiles::finish() {
  fits_.finish();
  shown_.write(folder_.staged(name_ + ".png"), coords_, header_);
}

}  // namespace mpol::cli
