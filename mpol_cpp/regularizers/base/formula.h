#pragma once

// What a regularizer says of itself to the fused step: where it is worked out, and in which formula. C++17 without LibTorch:
// kernels of each instruction set and the CUDA compiler read it.

/// Marks functions of a formula: they become part of the kernel that calls them, so that no copy of them is left which another
/// instruction set could be given.
#ifdef __CUDACC__
#define MPOL_FORMULA __host__ __device__ __forceinline__
#else
#define MPOL_FORMULA [[gnu::always_inline]] inline
#endif

namespace mpol {
class GridCoords;
struct Regularizer;
}  // namespace mpol

// Headers of regularizers declare functions of tensors; whoever calls them includes torch/types.h.
namespace at {
class Tensor;
}

namespace mpol::regularizers {

/// Where the fused step works a regularizer out, and with what it calls `at<Math>(…)` of its Formula. `Math` is VectorMath
/// (ops/simd/math.h: some pixels of a row) or ScalarMath (ops/gpu/gpu_math.h: one), and x a Math::Value. What it gives is a
/// Slope; `value` adds up to the unweighted R (times Regularizer::scaled_by), and `slope` is lambda times the derivative of R.
enum class Driver {
  none,         ///< nowhere: only the eager step takes it
  pixels,       ///< at(x), each pixel by itself; the derivative by x
  differences,  ///< at(s), s = dl^2 + dm^2 of a pixel's forward differences; twice the derivative by s
  curvatures,   ///< at(s), s = a^2 + b^2 + 2 c^2 of a pixel's second differences (losses::tv_slope); twice the derivative by s
  channels,     ///< at(spectrum), a pixel and the same one of up to two channels on each side; the derivative by spectrum.at(0)
  spectra,      ///< at(x, s), s = sum of x^2 over all channels; the derivative by x; the value counts once a spectrum
  edges,        ///< at(x), the pixels of the four edges, corners twice; the derivative by x
  half_plane,   ///< at(w, re, im), a visibility and its weight; gives a HalfPlaneSlope
};

/// Whether a regularizer that has no weight is worked out beside others of its driver that have: where that costs less than to
/// ask.
enum class Cost { small, large };

template <typename Value>
struct Slope {
  Value value, slope;
};

template <typename Value>
struct HalfPlaneSlope {
  Value value, real, imag;
};

/// Formula of lambda sum sqrt(s + epsilon), epsilon its first setting, for a driver that gives squares s and takes twice the
/// derivative by s.
template <typename T>
struct SmoothedLength {
  T weight, epsilon;
  MPOL_FORMULA SmoothedLength(double lambda, const double* own)
      : weight(static_cast<T>(lambda)), epsilon(static_cast<T>(own[0])) {}

  template <typename Math>
  MPOL_FORMULA Slope<typename Math::Value> at(typename Math::Value squares) const {
    const auto smoothed = squares + epsilon;
    const auto inverse = Math::reciprocal_square_root(smoothed);
    return {smoothed * inverse, weight * inverse};
  }
};

/// The most settings that a regularizer has.
inline constexpr int most_settings = 2;

/// What a regularizer has unless it says otherwise.
struct RegularizerDefaults {
  static constexpr Driver driver = Driver::none;
  static constexpr Cost cost = Cost::small;
  static constexpr double settings[most_settings] = {};  // epsilon, ...
  /// Makes of its settings what its Formula is given: what each thread would have to divide by is divided by once.
  static void prepare(double (&)[most_settings]) {}
};

}  // namespace mpol::regularizers
