#pragma once

// The kernel of a fused step over half planes; C++17.
#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>
#include <mpol_cpp/ops/gpu/gpu_math.h>

namespace mpol::ops {

/// The terms of a place of a half plane: chi^2 of its cell and the regularizer of the half plane. What they add up to is the half
/// plane whose unnormalised inverse real transform is the gradient of chi^2 / (2 N_norm) and of that regularizer. That transform
/// counts the columns but 0 and npix/2 twice. Cells in those two come in Hermitian pairs (FusedGpuPipeline sees to it), so that
/// the gradient's half plane is Hermitian too.
template <typename T>
class PlaceTerms {
 public:
  MPOL_DEVICE PlaceTerms(const GpuArrays<T>& arrays, std::int64_t problem)
      : arrays_(arrays),
        area_(static_cast<T>(arrays.constants.cell_area)),
        factor_(static_cast<T>(arrays.scale[problem] * arrays.constants.cell_area)),
        formulas_(DeviceTerms<T>{arrays, problem}) {}

  MPOL_DEVICE bool has_power() const { return arrays_.template uses<regularizers::Driver::half_plane>(); }

  /// @param at     row (npix/2 + 1) + column
  /// @param cell   -1 for none
  /// @param value  of the image's transform; not looked at without cell or regularizer
  MPOL_DEVICE ComplexValue<T> slope(std::uint32_t at, std::uint32_t column, std::int32_t cell, const ComplexValue<T>& value,
                                    double (&sums)[half_plane_sums]) const {
    const bool single = column == 0 || 2 * column == static_cast<std::uint32_t>(arrays_.shape.npix);
    ComplexValue<T> slope{T(0), T(0)};
    if (has_power()) add_power(value, arrays_.inverse_power[at], single ? 1.0 : 2.0, slope, sums[1]);
    if (cell >= 0) add_residual(value, cell, single ? T(2) * factor_ : factor_, slope, sums[0]);
    return slope;
  }

 private:
  MPOL_DEVICE void add_residual(const ComplexValue<T>& value, std::int32_t cell, T factor, ComplexValue<T>& slope,
                                double& chi_squared) const {
    const T weight = arrays_.weight[cell], factor_of_cell = factor * weight;
    const T real = area_ * value.real - arrays_.real[cell], imag = area_ * value.imag - arrays_.imag[cell];
    slope.real += factor_of_cell * real;
    slope.imag += factor_of_cell * imag;
    chi_squared += static_cast<double>(weight * (real * real + imag * imag));
  }

  MPOL_DEVICE void add_power(const ComplexValue<T>& value, T weight, double count, ComplexValue<T>& slope, double& power) const {
    static_assert(regularizers::KindsOf<regularizers::Driver::half_plane>::count == 1,
                  "one table of weights is for one regularizer");
    const auto found = formulas_.own.template at<gpu_math::ScalarMath<T>>(weight, value.real, value.imag);
    slope.real += found.real;
    slope.imag += found.imag;
    power += count * static_cast<double>(found.value);
  }

  const GpuArrays<T>& arrays_;
  T area_, factor_;  // the latter for a place that stands for its partner, too
  DeviceFormulas<T, regularizers::Driver::half_plane> formulas_;
};

/// Half planes by what PlaceTerms says of them, in their place.
template <typename T, typename Tile>
struct WeighBody {
  static constexpr int threads = Tile::threads, phases = 3;
  struct Shared {
    BlockSums<half_plane_sums, threads> sums;
  };
  struct Local {};

  GpuArrays<T> arrays;

  std::int64_t blocks() const { return arrays.shape.images() * arrays.template pieces<Tile>(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if constexpr (phase == 0) {
      double sums[half_plane_sums] = {};
      for (std::uint32_t k = 0; k < Tile::places; k += threads) weigh(place, k, sums);
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else {
      for (int q = place.thread; q < half_plane_sums; q += threads) {
        arrays.plane_sums[q * arrays.shape.images() * arrays.plane_pieces + place.block] = shared.sums.total(q);
      }
    }
  }

 private:
  MPOL_DEVICE void weigh(Place place, std::uint32_t k, double (&sums)[half_plane_sums]) const {
    const auto& shape = arrays.shape;
    const std::uint32_t pieces = arrays.template pieces<Tile>(), block = static_cast<std::uint32_t>(place.block);
    const std::uint32_t image = block / pieces, at = (block - image * pieces) * Tile::places + k + place.thread;
    if (at >= shape.half_plane()) return;
    const PlaceTerms<T> terms(arrays, image / shape.nchan);
    const std::int64_t begin = image * std::int64_t{shape.half_plane()};
    const auto cell = arrays.cell_of[image % arrays.cell_images * std::int64_t{shape.half_plane()} + at];
    ComplexValue<T> value{T(0), T(0)};
    if (cell >= 0 || terms.has_power()) value = arrays.spectrum[begin + at];
    arrays.spectrum[begin + at] = terms.slope(at, at % shape.half(), cell, value, sums);
  }
};

}  // namespace mpol::ops
