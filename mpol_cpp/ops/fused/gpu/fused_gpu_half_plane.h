#pragma once

// The kernel of a fused step over half planes; C++17.
#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>
#include <mpol_cpp/ops/gpu/gpu_math.h>

namespace mpol::ops {

/// Where half planes V hold data: chi^2 and, in their place, the half plane whose unnormalised inverse real transform is
/// the gradient of chi^2 / (2 N_norm) and of the regularizer of the half plane. That transform counts the columns but 0 and
/// npix/2 twice. Cells in those two come in Hermitian pairs (FusedGpuPipeline sees to it), so that the gradient's half plane is
/// Hermitian too.
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
        arrays.piece_sums[q * arrays.shape.images() * arrays.template pieces<Tile>() + place.block] = shared.sums.total(q);
      }
    }
  }

 private:
  MPOL_DEVICE void weigh(Place place, std::uint32_t k, double (&sums)[half_plane_sums]) const {
    const auto& shape = arrays.shape;
    const std::uint32_t pieces = arrays.template pieces<Tile>(), block = static_cast<std::uint32_t>(place.block);
    const std::uint32_t image = block / pieces, at = (block - image * pieces) * Tile::places + k + place.thread;
    if (at >= shape.half_plane()) return;
    const std::uint32_t column = at % shape.half(), problem = image / shape.nchan;
    const bool single = column == 0 || 2 * column == static_cast<std::uint32_t>(shape.npix);
    const std::int64_t begin = image * std::int64_t{shape.half_plane()};
    const auto cell = arrays.cell_of[image % arrays.cell_images * std::int64_t{shape.half_plane()} + at];
    const bool power = arrays.template uses<regularizers::Driver::half_plane>();
    ComplexValue<T> slope{T(0), T(0)};
    if (cell >= 0 || power) {
      const ComplexValue<T> value = arrays.spectrum[begin + at];
      if (power) add_power(value, arrays.inverse_power[at], problem, single ? 1.0 : 2.0, slope, sums[1]);
      if (cell >= 0) add_residual(value, cell, arrays.scale[problem] * (single ? 1.0 : 0.5), slope, sums[0]);
    }
    arrays.spectrum[begin + at] = slope;
  }

  MPOL_DEVICE void add_residual(const ComplexValue<T>& value, std::int32_t cell, double scale, ComplexValue<T>& slope,
                                double& chi_squared) const {
    const T area = static_cast<T>(arrays.constants.cell_area), weight = arrays.weight[cell];
    const T real = area * value.real - arrays.real[cell], imag = area * value.imag - arrays.imag[cell];
    const T factor = static_cast<T>(2.0 * scale * arrays.constants.cell_area) * weight;
    slope.real += factor * real;
    slope.imag += factor * imag;
    chi_squared += static_cast<double>(weight * (real * real + imag * imag));
  }

  MPOL_DEVICE void add_power(const ComplexValue<T>& value, T weight, std::int64_t problem, double count, ComplexValue<T>& slope,
                             double& power) const {
    const DeviceFormulas<T, regularizers::Driver::half_plane> formulas(DeviceTerms<T>{arrays, problem});
    static_assert(regularizers::KindsOf<regularizers::Driver::half_plane>::count == 1,
                  "one table of weights is for one regularizer");
    const auto found = formulas.own.template at<gpu_math::ScalarMath<T>>(weight, value.real, value.imag);
    slope.real += found.real;
    slope.imag += found.imag;
    power += count * static_cast<double>(found.value);
  }
};

}  // namespace mpol::ops
