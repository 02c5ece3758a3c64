#pragma once

// What a fused step works out at a pixel; C++17.
#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>
#include <mpol_cpp/ops/gpu/gpu_math.h>

namespace mpol::ops {

MPOL_DEVICE bool is_pixel(std::int32_t row, std::int32_t column, std::int32_t npix) {
  return static_cast<std::uint32_t>(row) < static_cast<std::uint32_t>(npix) &&
         static_cast<std::uint32_t>(column) < static_cast<std::uint32_t>(npix);
}

/// The index of a pixel in its image.
MPOL_DEVICE std::uint32_t pixel_index(std::int32_t row, std::int32_t column, std::int32_t npix) {
  return static_cast<std::uint32_t>(row) * static_cast<std::uint32_t>(npix) + static_cast<std::uint32_t>(column);
}

/// The slope of every term of an image but the likelihood.
/// @tparam Joining  Kinds of the regularizers that join channels, of those that are there: without them a kernel needs fewer
/// registers
template <typename T, typename Joining>
class PixelTerms {
 public:
  MPOL_DEVICE PixelTerms(const GpuArrays<T>& arrays, std::int32_t image)
      : PixelTerms(arrays, image, DeviceTerms<T>{arrays, image / arrays.shape.nchan}) {}

  MPOL_DEVICE bool has_differences() const { return arrays_.template uses<Driver::differences>(); }

  /// The slope of the regularizers of differences, by half of the squares s = dl^2 + dm^2.
  /// @param add  is called with a constant of TermKind and each value
  template <typename Add>
  MPOL_DEVICE T difference_slope(T squares, Add& add) const {
    return differences_.template slope_where<Math>(Has{arrays_}, add, squares);
  }

  /// The slope of the others, by the pixel x at row and column.
  template <typename Add>
  MPOL_DEVICE T slope(std::int32_t row, std::int32_t column, T x, Add& add) const {
    const std::uint32_t at = pixel_index(row, column, arrays_.shape.npix);
    T slope = pixels_.template slope_where<Math>(Has{arrays_}, add, x);
    if constexpr (Channels::count > 0) {
      const Spectrum spectrum{arrays_, image_ * std::int64_t{arrays_.shape.pixels()} + at, channel(), x};
      slope += channels_.template slope_where<Math>(HasJoining{arrays_}, add, spectrum);
    }
    if constexpr (Spectra::count > 0) {
      if (regularizers::has_any(Spectra{}, HasJoining{arrays_})) slope += spectrum_slope(at, x, add);
    }
    if (const int edges = edges_at(row, column); edges > 0) {
      const T count = static_cast<T>(edges);  // corners belong to two
      const auto add_each = [&](auto kind, T value) { add(kind, count * value); };
      slope += count * edges_.template slope_where<Math>(Has{arrays_}, add_each, x);
    }
    return slope;
  }

 private:
  using Driver = regularizers::Driver;
  using Math = gpu_math::ScalarMath<T>;
  using Channels = regularizers::KindsOf<Driver::channels, Joining>;
  using Spectra = regularizers::KindsOf<Driver::spectra, Joining>;

  struct Has {
    const GpuArrays<T>& arrays;
    MPOL_DEVICE bool operator()(TermKind kind) const { return arrays.has(kind); }
  };
  /// A kernel of one joining regularizer is taken where it is there.
  struct HasJoining {
    const GpuArrays<T>& arrays;
    MPOL_DEVICE bool operator()(TermKind kind) const { return Joining::count == 1 || arrays.has(kind); }
  };
  /// A pixel in all channels.
  struct Spectrum {
    const GpuArrays<T>& arrays;
    std::int64_t position;
    std::int32_t channel;
    T own;

    MPOL_DEVICE bool has(int offset) const { return channel + offset >= 0 && channel + offset < arrays.shape.nchan; }
    MPOL_DEVICE T at(int offset) const {
      return offset == 0 ? own : arrays.image[position + offset * std::int64_t{arrays.shape.pixels()}];
    }
  };

  MPOL_DEVICE PixelTerms(const GpuArrays<T>& arrays, std::int32_t image, const DeviceTerms<T>& terms)
      : arrays_(arrays), image_(image), pixels_(terms), differences_(terms), channels_(terms), spectra_(terms), edges_(terms) {}

  MPOL_DEVICE std::int32_t channel() const { return image_ % arrays_.shape.nchan; }

  /// The slope of the regularizers of spectra, whose values the first channel adds.
  template <typename Add>
  MPOL_DEVICE T spectrum_slope(std::uint32_t at, T x, Add& add) const {
    const auto add_once = [&](auto kind, T value) {
      if (channel() == 0) add(kind, value);
    };
    const auto squares = arrays_.of_image(arrays_.squares, image_ / arrays_.shape.nchan);
    return spectra_.template slope_where<Math>(HasJoining{arrays_}, add_once, x, squares[at]);
  }

  MPOL_DEVICE int edges_at(std::int32_t row, std::int32_t column) const {
    const std::int32_t last = arrays_.shape.npix - 1;
    if (!arrays_.template uses<Driver::edges>()) return 0;
    return (row == 0 || row == last ? 1 : 0) + (column == 0 || column == last ? 1 : 0);
  }

  const GpuArrays<T>& arrays_;
  std::int32_t image_;
  DeviceFormulas<T, Driver::pixels> pixels_;
  DeviceFormulas<T, Driver::differences> differences_;
  regularizers::Formulas<T, Channels> channels_;
  regularizers::Formulas<T, Spectra> spectra_;
  DeviceFormulas<T, Driver::edges> edges_;
};

/// What becomes of the base pixels of a problem.
template <typename T>
class PixelUpdate {
 public:
  MPOL_DEVICE PixelUpdate(const GpuArrays<T>& arrays, std::int64_t problem)
      : arrays_(arrays), stands_(arrays.stopped[problem] != 0), adam_(arrays.constants.update == FusedUpdate::adam) {
    const double rate = arrays.rate[problem];
    rate_ = static_cast<T>(adam_ ? rate * arrays.bias[problem] : rate);
    second_scale_ = adam_ ? static_cast<T>(arrays.bias[arrays.shape.problems + problem]) : T(0);
  }

  /// @param at     of all pixels
  /// @param slope  by softplus(base)
  /// @return the base pixel afterwards
  MPOL_DEVICE T operator()(std::int64_t at, T slope) const {
    const T base = arrays_.base[at], gradient = slope * gpu_math::softplus_derivative(base);
    if (arrays_.constants.update == FusedUpdate::none) {
      arrays_.gradient[at] = gradient;
      return base;
    }
    if (stands_) return base;
    const T updated = base - (adam_ ? adam_step(at, gradient) : sgd_step(at, gradient));
    arrays_.base[at] = updated;
    return updated;
  }

 private:
  MPOL_DEVICE T sgd_step(std::int64_t at, T gradient) const {
    if (arrays_.constants.momentum == 0) return rate_ * gradient;
    const T first = static_cast<T>(arrays_.constants.momentum) * arrays_.first[at] + gradient;
    arrays_.first[at] = first;
    return rate_ * first;
  }

  MPOL_DEVICE T adam_step(std::int64_t at, T gradient) const {
    const auto& constants = arrays_.constants;
    const T first = static_cast<T>(constants.beta1) * arrays_.first[at] + static_cast<T>(1.0 - constants.beta1) * gradient;
    const T second =
        static_cast<T>(constants.beta2) * arrays_.second[at] + static_cast<T>(1.0 - constants.beta2) * (gradient * gradient);
    arrays_.first[at] = first;
    arrays_.second[at] = second;
    // A moment that has overflowed would hold the pixel where it is for ever: no number says so instead.
    return gpu_math::quotient(rate_ * first, gpu_math::square_root(second) * second_scale_ + static_cast<T>(constants.epsilon)) +
           (second - second);
  }

  const GpuArrays<T>& arrays_;
  T rate_, second_scale_;
  bool stands_, adam_;
};

}  // namespace mpol::ops
