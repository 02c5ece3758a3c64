#pragma once

// The kernel of FusedKernels that ends a step; for files that mpol_add_isa_sources compiles.
#include <mpol_cpp/ops/fused/cpu/fused_row_kernels.h>

namespace mpol::ops::MPOL_ISA {

template <typename T>
struct Rates {
  T rate, momentum, beta1, beta2, one_minus_beta1, one_minus_beta2, epsilon, second_scale;

  explicit Rates(const UpdateSettings& s)
      : rate(static_cast<T>(s.rate)),
        momentum(static_cast<T>(s.momentum)),
        beta1(static_cast<T>(s.beta1)),
        beta2(static_cast<T>(s.beta2)),
        one_minus_beta1(static_cast<T>(1 - s.beta1)),
        one_minus_beta2(static_cast<T>(1 - s.beta2)),
        epsilon(static_cast<T>(s.epsilon)),
        second_scale(static_cast<T>(s.second_scale)) {}
};

/// Base pixels and moments of one vector.
template <typename T>
struct Pixels {
  Vector<T> base, first, second;
};

template <typename T, FusedUpdate kind, bool momentum>
MPOL_INLINE void update_pixels(Pixels<T>& pixels, Vector<T> gradient, const Rates<T>& rates) {
  if constexpr (kind == FusedUpdate::sgd) {
    if constexpr (momentum) pixels.first = rates.momentum * pixels.first + gradient;
    pixels.base -= rates.rate * (momentum ? pixels.first : gradient);
  } else if constexpr (kind == FusedUpdate::adam) {
    pixels.first = rates.beta1 * pixels.first + rates.one_minus_beta1 * gradient;
    pixels.second = rates.beta2 * pixels.second + rates.one_minus_beta2 * (gradient * gradient);
    const Vector<T> denominator = fast_square_root<T>(pixels.second) * rates.second_scale + rates.epsilon;
    pixels.base -= rates.rate * pixels.first * reciprocal<T>(denominator);
    // A moment that has overflowed would hold the pixel where it is for ever: no number says so instead.
    pixels.base -= pixels.second - pixels.second;
  }
}

template <typename T, FusedUpdate kind, bool momentum>
MPOL_INLINE void update_of(const T* __restrict below, const T* __restrict center, const T* __restrict above,
                           T* __restrict blended, const UpdateRow<T>& row, std::int64_t n, const UpdateSettings& settings,
                           LaneSum& parameters) {
  constexpr bool has_first = kind == FusedUpdate::adam || momentum, has_second = kind == FusedUpdate::adam;
  const Rates<T> rates(settings);
  T* __restrict base = row.base, * __restrict first = row.first, * __restrict second = row.second;
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    store<T>(blended + j, hann_blend<T>(load<T>(below + j), load<T>(center + j), load<T>(above + j)));
  }
  // Short loops instead of a long one: the processor then has more vectors under way at once. What goes between them
  // stays in the first cache.
  constexpr std::int64_t stretch = 512;
  alignas(vector_bytes) T gradients[stretch];
  Vector<T> sum{};
  for (std::int64_t begin = 0; begin < n; begin += stretch) {
    const auto count = n - begin < stretch ? n - begin : stretch;
    each_vector<T>(
        count, [&](std::int64_t i, std::int64_t valid) __attribute__((always_inline)) {
          const auto j = begin + i;
          __builtin_prefetch(base + n + j, 1);
          store<T>(gradients + i, exp_of_negative<T>(negative_magnitude<T>(load_first<T>(base + j, valid))));
        });
    each_vector<T>(
        count, [&](std::int64_t i, std::int64_t valid) __attribute__((always_inline)) {
          const auto j = begin + i;
          const Vector<T> slope = softplus_derivative_of<T>(load_first<T>(base + j, valid), load<T>(gradients + i));
          store<T>(gradients + i, hann_at<T>(blended + j) * slope);
        });
    each_vector<T>(
        count, [&](std::int64_t i, std::int64_t valid) __attribute__((always_inline)) {
          const auto j = begin + i;
          const Vector<T> gradient = load<T>(gradients + i);
          Pixels<T> pixels{load_first<T>(base + j, valid), {}, {}};
          if constexpr (has_first) {
            __builtin_prefetch(first + n + j, 1);
            pixels.first = load_first<T>(first + j, valid);
          }
          if constexpr (has_second) {
            __builtin_prefetch(second + n + j, 1);
            pixels.second = load_first<T>(second + j, valid);
          }
          update_pixels<T, kind, momentum>(pixels, gradient, rates);
          if constexpr (has_first) store_first<T>(first + j, pixels.first, valid);
          if constexpr (has_second) store_first<T>(second + j, pixels.second, valid);
          if constexpr (kind == FusedUpdate::none) store_first<T>(row.gradient + j, gradient, valid);
          else store_first<T>(base + j, pixels.base, valid);
          sum += valid < lanes<T> ? keep_first<T>(pixels.base, valid) : pixels.base;
        });
  }
  add_to<T>(parameters, sum);
}

template <typename T>
void update(FusedUpdate kind, const T* below, const T* center, const T* above, T* blended, const UpdateRow<T>& row,
            std::int64_t n, const UpdateSettings& settings, LaneSum& parameters) {
  switch (kind) {
    case FusedUpdate::none:
      return update_of<T, FusedUpdate::none, false>(below, center, above, blended, row, n, settings, parameters);
    case FusedUpdate::adam:
      return update_of<T, FusedUpdate::adam, false>(below, center, above, blended, row, n, settings, parameters);
    case FusedUpdate::sgd:
      if (row.first != nullptr) update_of<T, FusedUpdate::sgd, true>(below, center, above, blended, row, n, settings, parameters);
      else update_of<T, FusedUpdate::sgd, false>(below, center, above, blended, row, n, settings, parameters);
  }
}

}  // namespace mpol::ops::MPOL_ISA
