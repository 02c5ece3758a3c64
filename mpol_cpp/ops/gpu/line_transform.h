#pragma once

// Complex transforms of lines within the scratch memory of a block; C++17, no LibTorch: the CUDA compiler reads it.
// A line of N = r_1 r_2 ... points goes through passes of small transforms of r_p points (Stockham's order, which sorts as it
// goes), each from one array into another, so that a pass is one phase of a body.
#include <cstdint>

#include <mpol_cpp/ops/gpu/block.h>
#include <mpol_cpp/ops/gpu/complex_value.h>

namespace mpol::ops {

/// Division by a number that is known before a kernel is started, of numbers whose product with it is below 2^32.
struct Divisor {
  std::uint32_t value, inverse;  // inverse: 2^32 / value, rounded up; 0 for 1

  static Divisor of(std::int64_t value) {
    constexpr std::uint64_t one = std::uint64_t{1} << 32;
    const auto divisor = static_cast<std::uint32_t>(value);
    return {divisor, divisor > 1 ? static_cast<std::uint32_t>(one / divisor + 1) : 0};
  }
  MPOL_DEVICE int quotient(int number) const {
    if (inverse == 0) return number;
    return static_cast<int>((std::uint64_t{static_cast<std::uint32_t>(number)} * inverse) >> 32);
  }
};

/// One pass: small transforms of `radix` points each, after `done` = the product of the radices before.
struct LinePass {
  std::int32_t radix, step;  // step: of the roots of the line, length / (done radix)
  Divisor done, count;       // count: small transforms of a line, length / radix
};

/// How lines are transformed.
struct LinePlan {
  static constexpr int most_passes = 12;
  static constexpr std::int64_t longest = 8192;
  std::int32_t passes;
  Divisor length;
  LinePass pass[most_passes];

  /// Whether lines of so many points have a plan: no prime factor but 2, 3 and 5, and `longest` at most.
  static bool exists(std::int64_t length) {
    if (length < 1 || length > longest) return false;
    for (const std::int64_t prime : {2, 3, 5}) {
      while (length % prime == 0) length /= prime;
    }
    return length == 1;
  }

  /// @param length  one that has a plan
  static LinePlan of(std::int64_t length) {
    LinePlan plan{};
    plan.length = Divisor::of(length);
    std::int64_t done = 1;
    for (const std::int64_t radix : {8, 4, 2, 5, 3}) {
      while ((length / done) % radix == 0 && !(radix == 8 && is_sixteen(length / done))) {
        plan.pass[plan.passes++] = {static_cast<std::int32_t>(radix), static_cast<std::int32_t>(length / (done * radix)),
                                    Divisor::of(done), Divisor::of(length / radix)};
        done *= radix;
      }
    }
    return plan;
  }

  /// Elements from a line to the next: an element is left out after each sixteen, and lines begin in banks of their own.
  MPOL_DEVICE int distance() const {
    const int points = static_cast<int>(length.value);
    return (points + points / 16 + 11) / 16 * 16 + 4;
  }

 private:
  /// Whether 2 occurs four times in what is left: two passes of 4 are less work than one of 8 and one of 2.
  static bool is_sixteen(std::int64_t rest) { return rest % 16 == 0 && rest % 32 != 0; }
};

/// Lines in scratch memory.
template <typename T>
struct Lines {
  ScratchArray<ComplexValue<T>> values;
  int distance;

  MPOL_DEVICE ComplexValue<T>& at(int line, int i) const { return values[line * distance + i + (i >> 4)]; }
  /// 0 beyond both ends of a line of `length` points.
  MPOL_DEVICE ComplexValue<T> at_or_zero(int line, int i, int length) const {
    if (static_cast<unsigned>(i) < static_cast<unsigned>(length)) return at(line, i);
    return {T(0), T(0)};
  }
};

/// The transforms of two real rows a and b at one frequency. A line a + i b is transformed for both.
template <typename T>
struct RowPair {
  ComplexValue<T> a, b;

  /// @param frequency  0 to half of `length`
  MPOL_DEVICE static RowPair of_line(const Lines<T>& transformed, int line, int frequency, int length) {
    const auto value = transformed.at(line, frequency), partner = transformed.at(line, frequency == 0 ? 0 : length - frequency);
    return {{T(0.5) * (value.real + partner.real), T(0.5) * (value.imag - partner.imag)},
            {T(0.5) * (value.imag + partner.imag), T(0.5) * (partner.real - value.real)}};
  }
  /// Puts them where the inverse transform begins. That is the transform of swapped values, which comes out swapped: a is the
  /// imaginary part. Of frequencies 0 and length/2 the imaginary parts are left out, as real rows have none.
  MPOL_DEVICE void put(const Lines<T>& to, int line, int frequency, int length) const {
    if (frequency == 0 || 2 * frequency == length) {
      to.at(line, frequency) = {b.real, a.real};
      return;
    }
    to.at(line, frequency) = {a.imag + b.real, a.real - b.imag};
    to.at(line, length - frequency) = {b.real - a.imag, a.real + b.imag};
  }
};

/// Transforms of as many points as it has values, in place.
template <typename T>
MPOL_DEVICE void small_transform(ComplexValue<T> (&x)[2]) {
  const auto sum = x[0] + x[1];
  x[1] = x[0] - x[1];
  x[0] = sum;
}

template <typename T>
MPOL_DEVICE void small_transform(ComplexValue<T> (&x)[3]) {
  constexpr T sine = T(0.86602540378443864676);
  const auto sum = x[1] + x[2], turned = sine * (x[1] - x[2]).turned_back(), middle = x[0] - T(0.5) * sum;
  x[0] = x[0] + sum;
  x[1] = middle + turned;
  x[2] = middle - turned;
}

template <typename T>
MPOL_DEVICE void small_transform(ComplexValue<T> (&x)[4]) {
  const auto a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = (x[1] - x[3]).turned_back();
  x[0] = a + c;
  x[1] = b + d;
  x[2] = a - c;
  x[3] = b - d;
}

template <typename T>
MPOL_DEVICE void small_transform(ComplexValue<T> (&x)[5]) {
  constexpr T cosine1 = T(0.30901699437494742410), cosine2 = T(-0.80901699437494742410);
  constexpr T sine1 = T(0.95105651629515357212), sine2 = T(0.58778525229247312917);
  const auto a = x[1] + x[4], b = (x[1] - x[4]).turned_back(), c = x[2] + x[3], d = (x[2] - x[3]).turned_back();
  const auto near = x[0] + cosine1 * a + cosine2 * c, far = x[0] + cosine2 * a + cosine1 * c;
  const auto near_turned = sine1 * b + sine2 * d, far_turned = sine2 * b - sine1 * d;
  x[0] = x[0] + a + c;
  x[1] = near + near_turned;
  x[2] = far + far_turned;
  x[3] = far - far_turned;
  x[4] = near - near_turned;
}

template <typename T>
MPOL_DEVICE void small_transform(ComplexValue<T> (&x)[8]) {
  constexpr T half = T(0.70710678118654752440);
  ComplexValue<T> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
  small_transform(even);
  small_transform(odd);
  odd[1] = half * ComplexValue<T>{odd[1].real + odd[1].imag, odd[1].imag - odd[1].real};
  odd[2] = odd[2].turned_back();
  odd[3] = half * ComplexValue<T>{odd[3].imag - odd[3].real, -odd[3].real - odd[3].imag};
  MPOL_UNROLL
  for (int k = 0; k < 4; ++k) {
    x[k] = even[k] + odd[k];
    x[k + 4] = even[k] - odd[k];
  }
}

/// Transforms of `lines` lines within a block of threads: a plan, and the roots exp(-2 pi i k / length) of unity.
template <typename T>
struct LineTransform {
  const LinePlan& plan;
  DeviceArray<const ComplexValue<T>> roots;

  /// Bytes of two arrays of lines, which passes go from and to by turns.
  static std::int64_t bytes(const LinePlan& plan, int lines) {
    return std::int64_t{2} * lines * plan.distance() * static_cast<std::int64_t>(sizeof(ComplexValue<T>));
  }
  /// The array that pass `pass` goes from, and pass `pass` - 1 into: they take turns.
  MPOL_DEVICE Lines<T> before(int pass, const Place& place, int lines) const {
    const int size = lines * plan.distance();
    return {place.scratch<ComplexValue<T>>(pass % 2 * size * static_cast<int>(sizeof(ComplexValue<T>)), size), plan.distance()};
  }

  /// Where lines begin, and where they end after all passes. Transforms there and back end where they began.
  MPOL_DEVICE Lines<T> first(const Place& place, int lines) const { return before(0, place, lines); }
  MPOL_DEVICE Lines<T> last(const Place& place, int lines) const { return before(plan.passes, place, lines); }

  /// What one of `threads` threads does of a pass of the plan, the `turn`th that these arrays see.
  MPOL_DEVICE void run_pass(int pass, int turn, const Place& place, int lines, int of_block, int threads) const {
    const auto from = before(turn, place, of_block), to = before(turn + 1, place, of_block);
    switch (plan.pass[pass].radix) {
      case 2:
        return run_pass_of<2>(plan.pass[pass], from, to, lines, place.thread, threads);
      case 3:
        return run_pass_of<3>(plan.pass[pass], from, to, lines, place.thread, threads);
      case 4:
        return run_pass_of<4>(plan.pass[pass], from, to, lines, place.thread, threads);
      case 5:
        return run_pass_of<5>(plan.pass[pass], from, to, lines, place.thread, threads);
      default:
        return run_pass_of<8>(plan.pass[pass], from, to, lines, place.thread, threads);
    }
  }

 private:
  template <int radix>
  MPOL_DEVICE void run_pass_of(const LinePass& pass, const Lines<T>& from, const Lines<T>& to, int lines, int thread,
                               int threads) const {
    const int count = static_cast<int>(pass.count.value), done = static_cast<int>(pass.done.value);
    for (int i = thread; i < lines * count; i += threads) {
      const int line = pass.count.quotient(i), j = i - line * count, block = pass.done.quotient(j), k = j - block * done;
      ComplexValue<T> x[radix];
      MPOL_UNROLL
      for (int q = 0; q < radix; ++q) x[q] = from.at(line, j + q * count);
      if (done > 1) turn(x, k * pass.step);
      small_transform(x);
      const int begin = block * done * radix + k;
      MPOL_UNROLL
      for (int q = 0; q < radix; ++q) to.at(line, begin + q * done) = x[q];
    }
  }

  /// Multiplies x[q] by the root q times `root`. Those of powers of two are read, the others are products of two.
  template <int radix>
  MPOL_DEVICE void turn(ComplexValue<T> (&x)[radix], int root) const {
    ComplexValue<T> roots_of[radix];
    MPOL_UNROLL
    for (int q = 1; q < radix; ++q) {
      const int highest = q >= 4 ? 4 : q >= 2 ? 2 : 1;
      roots_of[q] = q == highest ? roots[q * root] : roots_of[highest] * roots_of[q - highest];
      x[q] = x[q] * roots_of[q];
    }
  }
};

}  // namespace mpol::ops
