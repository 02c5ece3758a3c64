#include <mpol_cpp/visibilities/value_range.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

// Positive floating-point numbers are ordered like their bits read as integers, infinity and NaN above all of them. An
// integer maximum over the bits without sign therefore finds the largest magnitude and every value that is not finite,
// and, unlike a floating-point one, the compiler may run it on vectors.
template <typename T>
using SignedBits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <typename T>
constexpr SignedBits<T> infinity_bits = std::bit_cast<SignedBits<T>>(std::numeric_limits<T>::infinity());

constexpr std::int64_t block = 1 << 16;

std::string index_text(const torch::Tensor& values, std::int64_t flat) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(values.dim()));
  for (auto d = values.dim() - 1; d >= 0; --d) {
    index[static_cast<std::size_t>(d)] = flat % values.size(d);
    flat /= values.size(d);
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

template <typename T>
[[noreturn]] void refuse_not_finite(const torch::Tensor& values, const T* numbers, std::int64_t offender, std::string_view name) {
  if (values.is_complex()) {
    const auto sample = offender / 2;
    throw DataError(fmt::format("{}{} is {}{:+}i; visibilities must be finite: remove or flag such samples", name,
                                index_text(values, sample), numbers[2 * sample], numbers[2 * sample + 1]));
  }
  throw DataError(fmt::format("{}{} is {}; it must be finite: remove or flag such samples", name, index_text(values, offender),
                              numbers[offender]));
}

template <typename T>
double largest_magnitude_of(const torch::Tensor& values, std::string_view name) {
  const auto* numbers = static_cast<const T*>(values.const_data_ptr());
  const auto count = values.numel() * (values.is_complex() ? 2 : 1);
  SignedBits<T> largest = 0;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const auto end = std::min(begin + block, count);
    for (auto i = begin; i < end; ++i) {
      largest = std::max(largest, std::bit_cast<SignedBits<T>>(numbers[i]) & std::numeric_limits<SignedBits<T>>::max());
    }
    if (largest < infinity_bits<T>) continue;
    const auto* offender = std::find_if(numbers + begin, numbers + end, [](T value) { return !std::isfinite(value); });
    refuse_not_finite(values, numbers, offender - numbers, name);
  }
  return static_cast<double>(std::bit_cast<T>(largest));
}

template <typename T>
void check_positive_of(const torch::Tensor& values, std::string_view name) {
  const auto* numbers = values.const_data_ptr<T>();
  const auto count = values.numel();
  for (std::int64_t begin = 0; begin < count; begin += block) {
    const auto end = std::min(begin + block, count);
    SignedBits<T> smallest = infinity_bits<T>, largest = 0;
    for (auto i = begin; i < end; ++i) {
      const auto bits = std::bit_cast<SignedBits<T>>(numbers[i]);  // the sign bit makes negative ones smallest
      smallest = std::min(smallest, bits);
      largest = std::max(largest, bits);
    }
    if (smallest > 0 && largest < infinity_bits<T>) continue;
    const auto* offender =
        std::find_if(numbers + begin, numbers + end, [](T value) { return !(std::isfinite(value) && value > 0); });
    throw DataError(fmt::format("{}{} is {}; it must be finite and greater than 0: remove or flag such samples", name,
                                index_text(values, offender - numbers), *offender));
  }
}

template <typename T>
std::pair<double, double> extremes_of(const torch::Tensor& values) {
  const auto* numbers = values.const_data_ptr<T>();
  const auto [least, most] = std::minmax_element(numbers, numbers + values.numel());
  return {*least, *most};
}

/// What float32 or float64 holds with room for the area of a cell, sums, and squares.
struct Room {
  const char* name;
  double least, small, large, most_chi_squared;
};
constexpr Room room_of_single{"float32", std::numeric_limits<float>::min(), 1e-30, 1e30, 1e36},
    room_of_double{"float64", std::numeric_limits<double>::min(), 1e-140, 1e140, 1e300};

}  // namespace

void check_representable(const torch::Tensor& data, const torch::Tensor& weights, torch::Dtype dtype) {
  if (weights.numel() == 0) return;
  const bool single = dtype == torch::kFloat32;
  const auto& room = single ? room_of_single : room_of_double;
  const auto [least, most] =
      weights.scalar_type() == torch::kFloat32 ? extremes_of<float>(weights) : extremes_of<double>(weights);
  const std::string remedy = single ? "compute in float64, or give data and weights in another unit of flux"
                                    : "give data and weights in another unit of flux";
  if (least < room.least) {
    throw DataError(
        fmt::format("the smallest weight is {:.4g} Jy^-2; {} holds no less than {:.4g}; remove or flag such samples, or {}",
                    least, room.name, room.least, remedy));
  }
  if (most < room.small || most > room.large) {
    throw DataError(fmt::format("the largest weight is {:.4g} Jy^-2; arithmetic in {} needs it between {:g} and {:g}; {}", most,
                                room.name, room.small, room.large, remedy));
  }
  const double largest = largest_magnitude(data, "data");
  if (largest > std::sqrt(room.most_chi_squared / most)) {
    throw DataError(
        fmt::format("data of up to {:.4g} Jy with weights of up to {:.4g} Jy^-2; their chi^2 overflows {}, {:g} at most; "
                    "remove or flag such samples, or {}",
                    largest, most, room.name, room.most_chi_squared, remedy));
  }
}

double largest_magnitude(const torch::Tensor& values, std::string_view name) {
  switch (c10::toRealValueType(values.scalar_type())) {
    case torch::kFloat32:
      return largest_magnitude_of<float>(values, name);
    case torch::kFloat64:
      return largest_magnitude_of<double>(values, name);
    default:
      throw ShapeError(
          fmt::format("{} is {}; float32 or float64 is needed: convert it", name, c10::toString(values.scalar_type())));
  }
}

double sum_in_float64(const torch::Tensor& values) {
  constexpr std::int64_t block = 1 << 20;
  const auto flat = values.flatten();
  double sum = 0;
  for (std::int64_t begin = 0; begin < flat.numel(); begin += block) {
    sum += flat.slice(0, begin, begin + block).sum(torch::kFloat64).item<double>();
  }
  return sum;
}

void check_positive(const torch::Tensor& values, std::string_view name) {
  switch (values.scalar_type()) {
    case torch::kFloat32:
      return check_positive_of<float>(values, name);
    case torch::kFloat64:
      return check_positive_of<double>(values, name);
    default:
      throw ShapeError(
          fmt::format("{} is {}; float32 or float64 is needed: convert it", name, c10::toString(values.scalar_type())));
  }
}

}  // namespace mpol
