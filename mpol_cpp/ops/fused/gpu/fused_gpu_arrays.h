#pragma once

// What the kernels of a fused step on a GPU are given. C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/fused/fused_terms.h>
#include <mpol_cpp/ops/gpu/block.h>
#include <mpol_cpp/ops/gpu/complex_value.h>
#include <mpol_cpp/ops/gpu/line_transform.h>
#include <mpol_cpp/regularizers/formulas.h>

namespace mpol::ops {

/// What a pass over half planes sums up: chi^2, then the regularizer of the half plane.
inline constexpr int half_plane_sums = 2;

/// What image passes sum up: regularizers of one image alone, the base pixels after the update, and regularizers that join
/// channels, all in the last pass; and regularizers of curvatures, which have a pass of their own.
constexpr bool joins_channels(regularizers::Driver driver) {
  return driver == regularizers::Driver::channels || driver == regularizers::Driver::spectra;
}
constexpr bool is_of_images(regularizers::Driver driver) {
  return driver != regularizers::Driver::none && driver != regularizers::Driver::half_plane;
}
enum class SumGroup { images, joining, curvatures };
constexpr SumGroup group_of(regularizers::Driver driver) {
  if (driver == regularizers::Driver::curvatures) return SumGroup::curvatures;
  return joins_channels(driver) ? SumGroup::joining : SumGroup::images;
}
/// How many of those before a regularizer in the list are of images and in a group.
constexpr int count_before(TermKind kind, SumGroup group) {
  int count = 0;
  for (int index = 0; index < static_cast<int>(kind); ++index) {
    const auto driver = driver_of(static_cast<TermKind>(index));
    count += is_of_images(driver) && group_of(driver) == group ? 1 : 0;
  }
  return count;
}
inline constexpr int parameters_sum = count_before(TermKind::custom, SumGroup::images);
inline constexpr int finish_sums = parameters_sum + 1 + count_before(TermKind::custom, SumGroup::joining);
inline constexpr int curvature_sums = count_before(TermKind::custom, SumGroup::curvatures);
inline constexpr int image_sums = finish_sums + curvature_sums;
/// Place of a regularizer among what image passes sum up.
constexpr int image_sum_of(TermKind kind) {
  const auto group = group_of(driver_of(kind));
  const int first = group == SumGroup::images ? 0 : group == SumGroup::joining ? parameters_sum + 1 : finish_sums;
  return first + count_before(kind, group);
}

/// What lies within one image is counted in 32 bits, the elements of all images in 64.
struct GpuShape {
  std::int32_t npix, nchan, problems;

  static constexpr std::int64_t largest_npix = 65534;  // whose pixels an unsigned number counts

  MPOL_DEVICE std::uint32_t half() const { return static_cast<std::uint32_t>(npix) / 2 + 1; }
  MPOL_DEVICE std::uint32_t pixels() const { return static_cast<std::uint32_t>(npix) * static_cast<std::uint32_t>(npix); }
  MPOL_DEVICE std::uint32_t half_plane() const { return static_cast<std::uint32_t>(npix) * half(); }
  MPOL_DEVICE std::int64_t images() const { return std::int64_t{problems} * nchan; }
};

/// What is the same in all steps.
struct GpuConstants {
  double cell_area;              // arcsec^2
  RegularizerSettings settings;  // prepared
  double momentum, beta1, beta2, epsilon;
  double stop_relative;      // of the criterion by which each problem stops itself
  std::int64_t stop_window;  // epochs; 0: there is none
  FusedUpdate update;
  bool present[regularizer_count];            // which terms any problem has
  int columns;                                // of the losses: total, nll, terms
  int term_of_column[regularizer_count + 2];  // a TermKind, for column >= 2
  int sum_of_column[regularizer_count + 2];   // what it is made of: half_plane_sums, then image_sums
  bool summed[image_sums];                    // by image passes; what is not has no sums
  double divisor_of_column[regularizer_count + 2];
};

/// What a step needs to transform rows and columns by itself: those columns of half planes that hold data, or all of them for a
/// regularizer of the half plane.
template <typename T>
struct KeptColumns {
  LinePlan plan;                             // of lines of npix points
  DeviceArray<const ComplexValue<T>> roots;  // (npix): exp(-2 pi i k / npix)
  std::int32_t count, of_block;              // columns of an image, and those that a block works on
  DeviceArray<const std::int32_t> column;    // (count): their places in the half plane, ascending
  DeviceArray<const std::int32_t> number;    // (npix/2 + 1): which of them a column is, -1 for none

  MPOL_DEVICE LineTransform<T> transform() const { return {plan, roots}; }
};

/// Images are (problems, nchan, npix, npix), half planes (problems, nchan, npix, npix/2 + 1), both contiguous.
template <typename T>
struct GpuArrays {
  GpuShape shape;
  GpuConstants constants;

  DeviceArray<T> base, first, second, gradient;  // first, second: moments; gradient: FusedUpdate::none alone
  DeviceArray<T> image, likelihood;              // Hann(softplus(base)); gradient of chi^2 / (2 N_norm) and of the half plane
  bool curves_alone;                             // in `likelihood`: where images are cut into rows
  DeviceArray<T> squares;                        // (problems, npix, npix): summed over channels, for regularizers of spectra
  /// The transform of the image, then of the gradient: half planes, or kept columns (images, columns, npix) where rows are cut.
  DeviceArray<ComplexValue<T>> spectrum;

  std::int32_t cell_images;  // nchan, or problems nchan where each has cells of its own
  DeviceArray<const std::int32_t>
      cell_of;  // like the spectrum's, (cell_images, …), of the cells below; -1 where there are no data
  DeviceArray<const T> weight, real, imag;  // (ncells)
  DeviceArray<const T> inverse_power;       // (npix, npix/2 + 1), times the cell area squared

  DeviceArray<const double> scale, constant;              // (problems): 1 / (2 N_norm); what no model can change of chi^2
  DeviceArray<const double> lambda, rate;                 // (regularizer_count, problems), (problems)
  DeviceArray<std::uint8_t> stopped;                      // (problems): parameters stay as they are
  DeviceArray<double> recent;                             // (stop_window + 1, problems): the last totals, in a ring
  DeviceArray<std::int64_t> recorded;                     // (problems): how many totals went into it
  DeviceArray<std::int64_t> steps;                        // (problems): taken
  DeviceArray<double> bias;                               // (2, problems): Adam's factors of rate and of sqrt(second), next step
  std::int32_t plane_pieces, image_pieces, curve_pieces;  // that a half plane, an image, an image for CurveBody is cut into
  DeviceArray<double> plane_sums;                         // (half_plane_sums, images, plane_pieces)
  DeviceArray<double> pixel_sums;                         // (finish_sums, images, image_pieces)
  DeviceArray<double> curve_sums;                         // (curvature_sums, images, curve_pieces)
  DeviceArray<double> total;                              // (problems): of the last step
  DeviceArray<std::int64_t> history, entry;               // (1): address of (entries, columns + 1, problems) float64; (problems)
  std::int64_t entries;                                   // of the history

  KeptColumns<T> kept;  // where images are cut into rows

  /// The pieces that a kernel with tiles of this kind cuts an image or half plane into.
  template <typename Tile>
  MPOL_DEVICE std::uint32_t tiles() const {
    return tiles_along<Tile>() * ((static_cast<std::uint32_t>(shape.npix) + Tile::height - 1) / Tile::height);
  }
  template <typename Tile>
  MPOL_DEVICE std::uint32_t tiles_along() const {
    return (static_cast<std::uint32_t>(shape.npix) + Tile::width - 1) / Tile::width;
  }
  template <typename Tile>
  MPOL_DEVICE std::uint32_t pieces() const {
    return (shape.half_plane() + Tile::places - 1) / Tile::places;
  }

  /// Those of an array that has one for each pixel.
  template <typename Value>
  MPOL_DEVICE DeviceArray<Value> of_image(const DeviceArray<Value>& all, std::int64_t index) const {
    return all.part(index * shape.pixels(), shape.pixels());
  }

  MPOL_DEVICE bool has(TermKind kind) const { return constants.present[static_cast<int>(kind)]; }
  template <regularizers::Driver driver>
  MPOL_DEVICE bool uses() const {
    return regularizers::has_any(regularizers::KindsOf<driver>{}, [this](TermKind kind) { return has(kind); });
  }
  MPOL_DEVICE double weight_of(TermKind kind, std::int64_t problem) const {
    return lambda[static_cast<std::int64_t>(kind) * shape.problems + problem];
  }
};

/// Weights and settings of one problem, as formulas take them.
template <typename T>
struct DeviceTerms {
  const GpuArrays<T>& arrays;
  std::int64_t problem;

  MPOL_DEVICE double weight(TermKind kind) const { return arrays.weight_of(kind, problem); }
  MPOL_DEVICE const double* settings(TermKind kind) const { return arrays.constants.settings.of[static_cast<int>(kind)]; }
};

/// The formulas of a driver for one problem.
template <typename T, regularizers::Driver driver>
using DeviceFormulas = regularizers::Formulas<T, regularizers::KindsOf<driver>>;

/// How kernels cut their work: pixels of an image tile, threads of a block, places of a half plane in a piece.
template <int tile_width, int tile_height, int tile_threads, int places_of_thread>
struct DeviceTile {
  static constexpr int width = tile_width, height = tile_height, threads = tile_threads;
  static constexpr std::uint32_t places = places_of_thread * tile_threads;
};
using LowTile = DeviceTile<32, 8, 256, 1>;    // for images so small that high ones leave processors idle
using HighTile = DeviceTile<32, 32, 256, 4>;  // reads fewer pixels twice
using OddTile = DeviceTile<5, 3, 7, 4>;       // divides nothing: for tests of the emulation

/// The rows of an image that a block works on, all of each, and its threads.
template <int rows_of_block, int threads_of_block>
struct DeviceRows {
  static constexpr int rows = rows_of_block, threads = threads_of_block;
  static constexpr int lines = rows / 2;  // two real rows are transformed as one complex line
  static_assert(rows % 2 == 0);
};
using TwoRows = DeviceRows<2, 256>;
using FourRows = DeviceRows<4, 256>;
using EightRows = DeviceRows<8, 512>;  // transforms the fewest rows twice
using OddRows = DeviceRows<6, 7>;      // for tests of the emulation

/// How images are cut: into tiles, between the transforms of a library; or into rows, which a block transforms by itself.
enum class TileKind { low, high, odd, two_rows, four_rows, eight_rows, odd_rows };
constexpr bool is_of_rows(TileKind kind) { return kind >= TileKind::two_rows; }

/// How steps are launched: each in several kernels; all that are enqueued at once in one kernel; as is faster, by a trial; or as
/// is usual, which is that on a GPU, and several kernels in the emulation and where the same bits are asked for
/// (is_deterministic).
enum class StepKernels { usual, several, one, faster };

enum class GpuKernel { map, square, weigh, curve, finish, collect, transform, gradient };  // the last two: rows alone

}  // namespace mpol::ops
