#pragma once

#include <algorithm>
#include <vector>

#include <mpol_cpp/ops/fft/line_transforms.h>
#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/fused/cpu/fused_pipeline.h>
#include <mpol_cpp/regularizers/formulas.h>

namespace mpol::ops::detail {

/// How the images of a FusedPipeline lie in memory and in which pieces they are worked off.
struct FusedGeometry {
  std::int64_t npix;
  std::int64_t row_distance;    // between image rows, elements
  std::int64_t panel_distance;  // between panels of kept columns, elements
  std::int64_t rows_per_block, blocks;

  template <typename T>
  static FusedGeometry of(std::int64_t npix);

  std::int64_t first_row(std::int64_t block) const { return block * rows_per_block; }
  std::int64_t end_row(std::int64_t block) const { return std::min(npix, (block + 1) * rows_per_block); }
};

/// Rows that one worker has in hand, with zeros around them; indices may be any image row.
template <typename T>
class RowScratch {
 public:
  /// What only some regularizers need.
  struct Extras {
    bool power, curvatures;
  };
  RowScratch(const FusedGeometry& geometry, std::int64_t transform_size, std::int64_t cells_per_panel, Extras extras);

  T* mapped() const { return row(0); }
  T* smoothed(std::int64_t r) const { return row(1 + (r + 3) % 3); }
  T* along() const { return row(4); }
  T* across(std::int64_t r) const { return row(5 + (r & 1)); }
  T* gradient(std::int64_t r) const { return row(7 + (r + 3) % 3); }
  T* blended() const { return row(10); }
  const T* zeros() const { return row(11); }
  /// Slopes of the regularizers of curvatures.
  CurvatureRow<T> bends(std::int64_t r) const {
    T* first = bends_.data() + 3 * (r & 3) * distance_ + row_margin;
    return {first, first + distance_, first + 2 * distance_};
  }

  /// A batch of image rows.
  T* lines() const { return lines_.data(); }
  /// What the transforms need.
  T* transform() const { return transform_.data(); }
  T* cells() const { return cells_.data(); }
  /// A panel of slopes of the regularizer of the half plane.
  T* power() const { return power_.data(); }

  std::size_t bytes() const {
    return rows_.bytes() + lines_.bytes() + transform_.bytes() + cells_.bytes() + power_.bytes() + bends_.bytes();
  }

 private:
  static constexpr std::int64_t row_count = 12;
  T* row(std::int64_t i) const { return rows_.data() + i * distance_ + row_margin; }

  std::int64_t distance_;
  AlignedArray<T> rows_, lines_, transform_, cells_, power_, bends_;
};

/// Whether a regularizer of one of these drivers has a weight.
template <regularizers::Driver... drivers>
bool in_use(const FusedTerms& terms) {
  return (regularizers::has_any(regularizers::KindsOf<drivers>{}, [&](TermKind kind) { return terms.weight(kind) > 0; }) || ...);
}

/// A panel's part of chi^2 and of the regularizer of the half plane.
struct PanelSums {
  double chi_squared = 0, power = 0;
};

/// What the gradient of the likelihood is taken from.
enum class GradientOf { cells, images };

/// The three passes of a FusedPipeline over one piece of its images each. `image` counts problems and channels.
template <typename T>
class FusedPasses {
 public:
  FusedPasses(const FusedSettings& settings, const std::vector<ColumnCells<T>>& cells, GradientOf likelihood);

  const FusedGeometry& geometry() const { return geometry_; }
  std::int64_t images() const { return settings_.problems * settings_.nchan; }
  /// Panels of kept columns, of all images; those of an image follow one another.
  std::int64_t panels() const { return static_cast<std::int64_t>(places_.size()); }
  std::int64_t first_panel(std::int64_t image) const { return first_panel_[static_cast<std::size_t>(image)]; }
  const FusedProblem& problem_of(std::int64_t image) const {
    return settings_.own[static_cast<std::size_t>(image / settings_.nchan)];
  }
  RowScratch<T> scratch() const {
    return {geometry_, fft_.scratch_size(), cells_per_panel_, {has_power(), any_uses<regularizers::Driver::curvatures>()}};
  }

  void map_rows(const T* base, std::int64_t image, std::int64_t block, const RowScratch<T>& scratch);
  /// What regularizers of spectra need of rows of all channels of a problem, before finish_rows.
  void square_rows(std::int64_t problem, std::int64_t block);
  PanelSums weigh_panel(std::int64_t panel, const RowScratch<T>& scratch);
  void finish_rows(FusedUpdate kind, const UpdateRow<T>& pixels, const UpdateSettings& update, std::int64_t image,
                   std::int64_t block, const RowScratch<T>& scratch, RowSums& sums);

  const T* image_row(std::int64_t image, std::int64_t row) const { return images_.data() + row_offset(image, row); }
  T* images_data() const { return images_.data(); }
  /// Where the gradient of a likelihood of the images is expected, (images, npix, npix).
  T* gradients_data() const { return gradients_.data(); }
  /// What the residuals of a channel's cells leave out of chi^2.
  double constant(std::int64_t image) const { return cells_of(image).constant; }
  std::size_t bytes() const { return images_.bytes() + gradients_.bytes() + spectra_.bytes() + squares_.bytes(); }

 private:
  struct Place {  // of a panel
    std::int64_t image, index;
  };

  std::int64_t row_offset(std::int64_t image, std::int64_t row) const {
    return (image * geometry_.npix + row) * geometry_.row_distance;
  }
  T* image_row(std::int64_t image, std::int64_t row) { return const_cast<T*>(std::as_const(*this).image_row(image, row)); }
  const PanelCells<T>& cells_of(std::int64_t image) const { return cells_[static_cast<std::size_t>(image) % cells_.size()]; }
  /// The panels of an image from a row on.
  FftPanels<T> panels_of(std::int64_t image, std::int64_t row) const;
  T* squares_row(std::int64_t problem, std::int64_t row) {
    return squares_.data() + (problem * geometry_.npix + row) * geometry_.row_distance;
  }
  ChannelRows<T> channel_rows(std::int64_t image, std::int64_t row) const {
    return {image_row(image, row), geometry_.npix * geometry_.row_distance, image % settings_.nchan, settings_.nchan};
  }
  static bool has_differences(const FusedTerms& terms) { return in_use<regularizers::Driver::differences>(terms); }
  template <regularizers::Driver driver>
  bool any_uses() const;  // any of the problems
  bool has_power() const { return any_uses<regularizers::Driver::half_plane>(); }
  /// Lays the weights of the half plane out as the panels of all columns have them.
  void prepare_power();

  /// Gradient of likelihood and half plane of up to a batch of rows, into scratch.lines().
  void likelihood_rows(std::int64_t image, std::int64_t first, std::int64_t count, const RowScratch<T>& scratch);
  void difference_row(std::int64_t image, std::int64_t row, const RowScratch<T>& scratch, RowSums& sums);
  /// Slopes of the regularizers of curvatures at a row; nothing beyond the image.
  void bend_row(std::int64_t image, std::int64_t row, const RowScratch<T>& scratch, RowSums& sums);
  void add_curvatures(std::int64_t row, T* gradient, const RowScratch<T>& scratch) const;
  void gradient_row(std::int64_t image, std::int64_t row, const T* likelihood, const RowScratch<T>& scratch, RowSums& sums);
  void add_edges(std::int64_t image, std::int64_t row, T* gradient, RowSums& sums) const;

  FusedSettings settings_;  // with every problem's own, whose terms are prepared
  FusedGeometry geometry_;
  LineTransforms<T> fft_;
  std::vector<PanelCells<T>> cells_;       // per channel, or per image
  std::vector<std::int64_t> first_panel_;  // of each image, and behind the last
  std::vector<Place> places_;
  std::int64_t cells_per_panel_ = 0;
  AlignedArray<T>
      inverse_power_;  // (panels, npix, batch), times the cell area squared and the columns of the plane each stands for
  FusedKernels<T> kernels_;
  AlignedArray<T> images_, gradients_, spectra_;
  AlignedArray<T> squares_;  // (problems, npix, row_distance), summed over channels; empty without regularizers of spectra
};

}  // namespace mpol::ops::detail
