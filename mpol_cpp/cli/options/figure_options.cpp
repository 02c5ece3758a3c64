#include <mpol_cpp/cli/options/figure_options.h>

#include <mpol_cpp/plot/image_panel.h>

namespace mpol::cli {

std::string unit_label(const std::string& unit) { return unit == "Jy/arcsec2" ? "Jy/arcsec²" : unit; }

plot::ImageFigureOptions figure_options(const io::FitsOptions& header, std::int64_t nchan) {
  plot::ImageFigureOptions figure;
  figure.unit = header.unit() == io::FitsUnit::jy_per_beam ? "Jy/beam" : "Jy/arcsec²";  // cubes in Jy/pixel are given so
  figure.center = header.observation().center;
  if (header.frequencies().defined()) figure.frequencies = plot::to_vector(header.frequencies());
  const auto& beams = header.beams();
  if (beams.size() == static_cast<std::size_t>(nchan)) {
    figure.beams = beams;
  } else if (!beams.empty()) {
    figure.beam = beams.front();
  }
  return figure;
}

}  // namespace mpol::cli
