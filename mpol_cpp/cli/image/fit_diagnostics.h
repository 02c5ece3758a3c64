#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/objective/fit_probe.h>
#include <mpol_cpp/plot/figure_writer.h>
#include <mpol_cpp/train/options/train_options.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol::cli {

/// What diagnostics.csv and last.safetensors of an earlier fit hold.
struct SavedDiagnostics {
  std::vector<double> epochs;             ///< done when each row was taken
  std::vector<std::vector<double>> flux;  ///< Jy, one vector per channel
  std::vector<double> gradient_norm, largest_change;
  std::int64_t image_epoch = -1;   ///< of the tensors
  Tensor image, gradient, change;  ///< (nchan, npix, npix); undefined where there is none
  double cell_size = 0;            ///< arcsec
};
/// Nothing when the folder has none. @throws DataError, FileError when they cannot be read
std::optional<SavedDiagnostics> read_diagnostics(const std::filesystem::path& out);

/// Shows how a fit goes, every few epochs: in OUT/diagnostics
///
///   epoch_NNNNNN.png   image, its change since the last figure, gradient of the objective with respect to the image; losses,
///                      learning rate and flux so far
///   diagnostics.csv    epoch,gradient_norm,largest_change,flux_0,… one row a figure
///   last.safetensors   image, gradient and change of the newest figure, for `mpol plot OUT`
///
/// each file replaced by a rename. It looks at the model by a FitProbe; a resumed fit goes on with the files of the interrupted
/// one. A file that cannot be written is a warning, and the next figure tries again.
class FitDiagnostics {
 public:
  /// @param interval    epochs between figures, > 0
  /// @param checkpoint  where a resumed fit finds the losses of the epochs before
  /// @param center      of the image from the phase centre, for the axes
  FitDiagnostics(std::filesystem::path out, std::int64_t interval, const Objective& objective, ImageModel& model,
                 std::filesystem::path checkpoint, const SkyOffset& center = {});

  Callback callback();
  /// The last epoch, unless it was shown.
  void finish(ImageModel& model);

 private:
  void begin(std::int64_t epochs_done_before);
  void show(ImageModel& model);
  void write(const FitView& view);
  void write_table() const;
  void write_last(const FitView& view) const;
  void write_figure(const FitView& view);

  struct Row {
    std::int64_t epoch;
    double gradient_norm, largest_change;
    std::vector<double> flux;
  };

  std::filesystem::path out_, checkpoint_;
  std::int64_t interval_;
  std::vector<std::string> loss_names_;
  FitProbe probe_;
  GridCoords coords_;
  SkyOffset center_;
  bool begun_ = false;
  bool failed_ = false;    // the newest figure could not be written
  std::int64_t done_ = 0;  // epochs
  LossHistory history_;
  std::vector<Row> rows_;
  plot::FigureWriter figures_{plot::Scripts::discard};
};

}  // namespace mpol::cli
