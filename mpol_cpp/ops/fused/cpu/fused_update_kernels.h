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
  Vector<T> sum{};
  const auto gradient_at = [&](std::int64_t j, Vector<T> pixel) __attribute__((always_inline)) {
    return hann_at<T>(blended + j) * softplus_derivative<T>(pixel);
  };
  std::int64_t j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) {
    Pixels<T> pixels{load<T>(base + j), {}, {}};
    __builtin_prefetch(base + n + j, 1);
    if constexpr (has_first) __builtin_prefetch(first + n + j, 1);
    if constexpr (has_second) __builtin_prefetch(second + n + j, 1);
    const Vector<T> gradient = gradient_at(j, pixels.base);
    if constexpr (has_first) pixels.first = load<T>(first + j);
    if constexpr (has_second) pixels.second = load<T>(second + j);
    update_pixels<T, kind, momentum>(pixels, gradient, rates);
    if constexpr (has_first) store<T>(first + j, pixels.first);
    if constexpr (has_second) store<T>(second + j, pixels.second);
    if constexpr (kind == FusedUpdate::none) store<T>(row.gradient + j, gradient);
    else store<T>(base + j, pixels.base);
    sum += pixels.base;
  }
  if (const auto rest = n - j; rest > 0) {
    Pixels<T> pixels{load_part<T>(base + j, rest), {}, {}};
    const Vector<T> gradient = gradient_at(j, pixels.base);
    if constexpr (has_first) pixels.first = load_part<T>(first + j, rest);
    if constexpr (has_second) pixels.second = load_part<T>(second + j, rest);
    update_pixels<T, kind, momentum>(pixels, gradient, rates);
    if constexpr (has_first) store_part<T>(first + j, pixels.first, rest);
    if constexpr (has_second) store_part<T>(second + j, pixels.second, rest);
    if constexpr (kind == FusedUpdate::none) store_part<T>(row.gradient + j, gradient, rest);
    else store_part<T>(base + j, pixels.base, rest);
    sum += keep_first<T>(pixels.base, rest);
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
