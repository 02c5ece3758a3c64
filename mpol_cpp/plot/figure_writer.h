#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/plot/page.h>

namespace mpol::plot {

class Gnuplot;

/// What becomes of the script and the data that gnuplot draws a figure from.
enum class Scripts {
  keep,     ///< they stay, for changes by hand
  discard,  ///< they lie in a temporary folder, and go: of a series of figures they would take many times its room
};

/// Draws pages as PNG files by one gnuplot, which works while the caller goes on.
///
/// Script and data of a figure lie in `figures` beside it, if they are kept. Without gnuplot, and where it fails, there are
/// only they, and a warning in the log; `finish` tells.
class FigureWriter {
 public:
  /// @param seconds  that gnuplot may take for a figure before it is given up
  explicit FigureWriter(Scripts scripts = Scripts::keep, double seconds = 60);
  /// Figures that were not waited for are dropped.
  ~FigureWriter();
  FigureWriter(const FigureWriter&) = delete;
  FigureWriter& operator=(const FigureWriter&) = delete;

  /// Writes script and data of a figure, and has it drawn.
  /// @param path  of the PNG file, which appears only when it is complete
  /// @throws ValueError for a page without panels or a panel without pixels; FileError when a file cannot be written
  void add(const std::filesystem::path& path, const Page& page);

  /// Waits for all figures. @return whether all are there  @throws FileError when one cannot be written
  bool finish();

 private:
  struct Figure {
    std::filesystem::path path, folder;
    std::string script;
    std::string drawn;  // name of what gnuplot writes in the folder
    std::string end;    // what gnuplot prints after it
  };

  /// The folder of a figure's script and data, which is there then.
  std::filesystem::path folder_of(const std::filesystem::path& figure);
  void send(const Figure& figure);
  /// @return why there is none, if so
  std::string collect(const Figure& figure);

  Scripts scripts_;
  double seconds_;
  std::filesystem::path scratch_;  // the temporary folder, once there is one
  std::unique_ptr<Gnuplot> gnuplot_;
  std::vector<Figure> figures_;  // that were not collected
};

/// Draws one figure. @return whether it is there, as FigureWriter::finish
bool write_figure(const std::filesystem::path& path, const Page& page, Scripts scripts = Scripts::keep);

/// The script of a figure, whether it was drawn or not.
std::filesystem::path script_of(const std::filesystem::path& figure);

}  // namespace mpol::plot
