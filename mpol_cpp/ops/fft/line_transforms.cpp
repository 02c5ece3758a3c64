#include <mpol_cpp/ops/fft/line_transforms.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include <ATen/ops/fft_fft.h>
#include <ATen/ops/zeros.h>
#include <torch/types.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/simd/isa_table.h>

namespace mpol::ops {
namespace {

/// e^{i pi numerator / denominator}
std::complex<double> turn(std::int64_t numerator, std::int64_t denominator) {
  const double angle = std::numbers::pi * static_cast<double>(numerator % (2 * denominator)) / static_cast<double>(denominator);
  return {std::cos(angle), std::sin(angle)};
}

/// Radices of the stages, the longest powers of two first; what is left of the length comes last where it is not 1.
std::vector<int> factors(std::int64_t length, int largest_radix) {
  std::vector<int> radices;
  int twos = 0;
  for (; length % 2 == 0; length /= 2) ++twos;
  const int most = largest_radix == 8 ? 3 : 2;
  while (twos > 0) {
    const int power = twos == 4 ? 2 : std::min(twos, most);
    radices.push_back(1 << power);
    twos -= power;
  }
  for (const int odd : {3, 5, 7, 11, 13}) {
    for (; length % odd == 0; length /= odd) radices.push_back(odd);
  }
  if (length > 1) radices.push_back(static_cast<int>(length));
  return radices;
}

/// The smallest product of 2, 3 and 5 that is not below `length`.
std::int64_t smooth_length(std::int64_t length) {
  for (;; ++length) {
    auto rest = length;
    for (const int factor : {2, 3, 5}) {
      while (rest % factor == 0) rest /= factor;
    }
    if (rest == 1) return length;
  }
}

template <typename T>
void append(std::vector<T>& numbers, std::complex<double> value) {
  numbers.push_back(static_cast<T>(value.real()));
  numbers.push_back(static_cast<T>(value.imag()));
}

template <typename T>
FftStage<T> stage_of(std::int64_t length, int radix) {
  FftStage<T> stage{radix, length, {}, {}};
  for (std::int64_t j = 1; j < length / radix; ++j) {
    for (int q = 1; q < radix; ++q) append(stage.twiddles, turn(2 * j * q, length));
  }
  if (radix % 2 != 0) {
    for (std::int64_t k = 0; k < radix; ++k) append(stage.roots, turn(2 * k, radix));
  }
  return stage;
}

/// Frequency q_1 + r_1 (q_2 + r_2 (q_3 + ...)) is number q_l of the blocks that stage l makes; without stages it stays in place.
template <typename T>
std::vector<std::int32_t> slots_of(const std::vector<FftStage<T>>& stages, std::int64_t length) {
  std::vector<std::int32_t> slots;
  slots.reserve(static_cast<std::size_t>(length));
  for (std::int64_t k = 0; k < length; ++k) {
    std::int64_t slot = 0, rest = k;
    for (const auto& stage : stages) {
      slot += rest % stage.radix * (stage.length / stage.radix);
      rest /= stage.radix;
    }
    slots.push_back(static_cast<std::int32_t>(slot + rest));
  }
  return slots;
}

/// Transform of e^{i pi j^2 / length}, j = 1 - length ... length - 1, over the period of the convolution, divided by it.
template <typename T>
std::vector<T> chirp_filter(std::int64_t length, const FftPlan<T>& convolution) {
  const auto period = convolution.length;
  auto chirp = at::zeros({period}, torch::kComplexDouble);
  auto* value = chirp.template mutable_data_ptr<c10::complex<double>>();
  for (std::int64_t j = 0; j < length; ++j) {
    const auto at = turn(j * j % (2 * length), length);
    value[j] = value[(period - j) % period] = {at.real(), at.imag()};
  }
  const auto transform = (at::fft_fft(chirp) / static_cast<double>(period)).contiguous();
  const auto* frequency = transform.template const_data_ptr<c10::complex<double>>();
  std::vector<T> filter(2 * static_cast<std::size_t>(period));
  for (std::int64_t k = 0; k < period; ++k) {
    const auto slot = 2 * static_cast<std::size_t>(convolution.slots[static_cast<std::size_t>(k)]);
    filter[slot] = static_cast<T>(frequency[k].real());
    filter[slot + 1] = static_cast<T>(frequency[k].imag());
  }
  return filter;
}

std::int64_t even(std::int64_t length) {
  if (length < 2 || length % 2 != 0) throw ValueError(fmt::format("a line has {} pixels; it must be an even number > 0", length));
  return length;
}

}  // namespace

template <typename T>
FftPlan<T>::FftPlan(std::int64_t size, int largest_radix) : length(size) {
  constexpr int largest_odd_radix = 13;
  const auto radices = factors(length, largest_radix);
  if (!radices.empty() && radices.back() > largest_odd_radix) {
    convolution = std::make_unique<FftPlan>(smooth_length(2 * length - 1), largest_radix);
    for (std::int64_t j = 0; j < length; ++j) append(chirp, std::conj(turn(j * j % (2 * length), length)));
    filter = chirp_filter(length, *convolution);
  } else {
    auto rest = length;
    for (const int radix : radices) {
      stages.push_back(stage_of<T>(rest, radix));
      rest /= radix;
    }
  }
  slots = slots_of(stages, length);
}

template <typename T>
RealFftPlan<T>::RealFftPlan(std::int64_t length, int largest_radix) : half(length / 2, largest_radix) {
  for (std::int64_t k = 0; k <= length / 2; ++k) append(turns, 0.5 * turn(2 * k, length));
}

template <typename T>
LineTransforms<T>::LineTransforms(std::int64_t length, Isa isa)
    : kernels_(fft_kernels<T>(isa)),
      rows_(even(length), kernels_.largest_radix),
      columns_(length, kernels_.largest_radix),
      scratch_size_(std::max(rows_.scratch_size(), columns_.scratch_size())) {}

MPOL_DEFINE_TABLE_BY_ISA(FftKernels, fft_kernels)

template struct FftPlan<float>;
template struct FftPlan<double>;
template struct RealFftPlan<float>;
template struct RealFftPlan<double>;
template class LineTransforms<float>;
template class LineTransforms<double>;

}  // namespace mpol::ops
