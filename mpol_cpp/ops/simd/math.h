#pragma once

// Elementary functions on vectors, branch-free, within 3 units in the last place; softplus and its derivative, which take a few
// roundings more, within 4, however the compiler contracts them. NaN in, NaN out. The polynomials interpolate their function at
// Chebyshev nodes; what they leave out is below a fifth of a unit in the last place.
#include <mpol_cpp/ops/simd/vector.h>

namespace mpol::ops::MPOL_ISA {

template <typename T>
struct MathConstants;

template <>
struct MathConstants<float> {
  static constexpr int mantissa_bits = 23;
  static constexpr std::int32_t one = 0x3f800000, half_root_two = 0x3f3504f3, exponent_bias = 127;
  static constexpr float round = 0x1.8p23F;       // adding it rounds to an integer in the last bits
  static constexpr float smallest_log = -87.33F;  // e^x is normal above
  static constexpr float log2_e = 0x1.715476p+0F, ln2_high = 0x1.62ep-1F, ln2_low = 0x1.0bfbe8p-15F;
  /// (e^r - 1 - r) / r^2 for |r| <= ln(2)/2
  static constexpr float exponential[] = {0.5F, 0.166665767F, 0.0416665542F, 0.00836323288F, 0.00139262508F};
  /// 2 (atanh(s)/s - 1) / s^2 in s^2 <= 1/9
  static constexpr float logarithm[] = {0.666666673F, 0.399997062F, 0.285923648F, 0.21706461F, 0.232249218F};
};

template <>
struct MathConstants<double> {
  static constexpr int mantissa_bits = 52;
  static constexpr std::int64_t one = 0x3ff0000000000000, half_root_two = 0x3fe6a09e667f3bcd, exponent_bias = 1023;
  static constexpr double round = 0x1.8p52;
  static constexpr double smallest_log = -708.39;
  static constexpr double log2_e = 0x1.71547652b82fep+0, ln2_high = 0x1.62e42fefa2000p-1, ln2_low = 0x1.9ef35793c7673p-41;
  static constexpr double exponential[] = {0.50000000000000010314,   0.1666666666666666746,    0.041666666666623820532,
                                           0.0083333333333300381973, 0.0013888888917367080562, 0.00019841269863171556026,
                                           2.4801521057868205199e-5, 2.7557268275905696187e-6, 2.7620201591031548792e-7,
                                           2.5100472505694996003e-8};
  static constexpr double logarithm[] = {
      0.66666666666666658552, 0.40000000000014596614, 0.28571428567105060928, 0.22222222717801781691,  0.18181789417326447891,
      0.15385570592912243603, 0.13314135550881162863, 0.12001155182857778692, 0.088003176508687734689, 0.16164938169471338621};
};

template <typename T, int count>
MPOL_INLINE Vector<T> polynomial(const T (&coefficients)[count], Vector<T> x) {
  Vector<T> sum = broadcast<T>(coefficients[count - 1]);
  for (int i = count - 2; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

/// e^x for x <= 0; 0 where that would be subnormal.
/// e^x = 2^n e^r with n = round(x / ln 2) and r = x - n ln 2, whose ln 2 is split so that the product with n is exact.
template <typename T>
MPOL_INLINE Vector<T> exp_of_negative(Vector<T> x) {
  using C = MathConstants<T>;
  const Vector<T> bounded = at_least<T>(broadcast<T>(C::smallest_log), x);
  const Vector<T> shifted = bounded * C::log2_e + C::round;
  const Vector<T> n = shifted - C::round;
  const Vector<T> r = (bounded - n * C::ln2_high) - n * C::ln2_low;
  const Vector<T> power = T(1) + (r + r * r * polynomial<T>(C::exponential, r));
  const auto bits = (reinterpret_cast<IntegerVector<T>>(shifted) << C::mantissa_bits) + C::one;
  return x < C::smallest_log ? Vector<T>{} : power * reinterpret_cast<Vector<T>>(bits);
}

/// 2 atanh(s), |s| <= 1/3
template <typename T>
MPOL_INLINE Vector<T> twice_atanh(Vector<T> s) {
  const Vector<T> square = s * s;
  return (s + s) + s * square * polynomial<T>(MathConstants<T>::logarithm, square);
}

/// ln(1 + x) for 0 <= x <= 1, as 2 atanh(x / (2 + x)).
template <typename T>
MPOL_INLINE Vector<T> log1p_of_fraction(Vector<T> x) {
  return twice_atanh<T>(x * reciprocal<T>(T(2) + x));
}

/// ln(x) for normal, finite x > 0: x = 2^n m with m around 1, ln m = 2 atanh((m - 1) / (m + 1)).
template <typename T>
MPOL_INLINE Vector<T> logarithm(Vector<T> x) {
  using C = MathConstants<T>;
  const auto bits = reinterpret_cast<IntegerVector<T>>(x);
  const auto above = bits - C::half_root_two;
  const auto exponent = above >> C::mantissa_bits;
  const auto m = reinterpret_cast<Vector<T>>(bits - (exponent << C::mantissa_bits));
  const Vector<T> n = __builtin_convertvector(exponent, Vector<T>);
  const Vector<T> value = n * C::ln2_high + (n * C::ln2_low + twice_atanh<T>((m - T(1)) * reciprocal<T>(m + T(1))));
  return x == x ? value : x;
}

/// at::softplus with beta 1 and threshold 20, of x and e^-|x|. Beyond that e^-x is below half a unit in the last place of x in
/// float32, so that x comes out by itself.
template <typename T>
MPOL_INLINE Vector<T> softplus_of(Vector<T> x, Vector<T> exponential) {
  const Vector<T> value = at_least<T>(Vector<T>{}, x) + log1p_of_fraction<T>(exponential);
  if constexpr (sizeof(T) == 4) return value;
  else return x > T(20) ? x : value;
}

template <typename T>
MPOL_INLINE Vector<T> softplus(Vector<T> x) {
  return softplus_of<T>(x, exp_of_negative<T>(negative_magnitude<T>(x)));
}

/// Its derivative, 1 / (1 + e^-x), 1 beyond the threshold: likewise by itself in float32.
template <typename T>
MPOL_INLINE Vector<T> softplus_derivative_of(Vector<T> x, Vector<T> exponential) {
  const Vector<T> above_zero = x >= T(0) ? broadcast<T>(T(1)) : Vector<T>{};  // which e^-|x| does not exceed
  const Vector<T> value = at_least<T>(above_zero, exponential) * reciprocal<T>(T(1) + exponential);
  if constexpr (sizeof(T) == 4) return value;
  else return x > T(20) ? broadcast<T>(T(1)) : value;
}

template <typename T>
MPOL_INLINE Vector<T> softplus_derivative(Vector<T> x) {
  return softplus_derivative_of<T>(x, exp_of_negative<T>(negative_magnitude<T>(x)));
}

/// What formulas of regularizers are worked out with, on vectors (regularizers/base/formula.h).
template <typename T>
struct VectorMath {
  using Value = Vector<T>;
  MPOL_INLINE static Value constant(T value) { return broadcast<T>(value); }
  MPOL_INLINE static Value magnitude(Value x) { return ops::MPOL_ISA::magnitude<T>(x); }
  MPOL_INLINE static Value logarithm(Value x) { return ops::MPOL_ISA::logarithm<T>(x); }
  MPOL_INLINE static Value reciprocal_square_root(Value x) { return ops::MPOL_ISA::reciprocal_square_root<T>(x); }
};

}  // namespace mpol::ops::MPOL_ISA
