#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

/// A file of a figure: its name in the figure's folder and its bytes.
struct FigureFile {
  std::string name;
  std::string contents;
};

/// A page as a gnuplot script, the first of the files, and its data: images as float32 rows from South to North and West
/// to East, curves as text columns. The script draws into the gnuplot variable `output`, by default STEM.png in its folder.
/// @param stem  begins the names of all files: `image` gives image.gp, image_1.f32, …
/// @throws ValueError for a page without panels or an image panel without pixels
std::vector<FigureFile> gnuplot_files(const Page& page, const std::string& stem);

}  // namespace mpol::plot
