// Transforms of lines within a block of a GPU, run by loops on the CPU.
#include "catch.h"

#include <cmath>

#include <ATen/ops/fft_fft.h>

#include <mpol_cpp/ops/gpu/device_array.h>
#include <mpol_cpp/ops/gpu/emulated_block.h>
#include <mpol_cpp/ops/gpu/line_roots.h>
#include <mpol_cpp/ops/gpu/line_transform.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using ops::LinePlan;
using ops::Place;

namespace {

/// Transforms lines (blocks, lines, length) in their place.
template <typename T>
struct LinesBody {
  static constexpr int threads = 7, phases = 3, round_begin = 1, round_end = 2;
  struct Shared {};
  struct Local {};

  LinePlan plan;
  ops::DeviceArray<const ops::ComplexValue<T>> roots;
  ops::DeviceArray<ops::ComplexValue<T>> values;
  int lines;

  std::int64_t blocks() const { return values.size / (lines * std::int64_t{plan.length.value}); }
  std::int64_t rounds(std::int64_t) const { return plan.passes; }
  std::int64_t scratch_bytes() const { return ops::LineTransform<T>::bytes(plan, lines); }

  template <int phase>
  void run(Place place, Shared&, Local&) const {
    const ops::LineTransform<T> transform{plan, roots};
    const int length = static_cast<int>(plan.length.value), pass = static_cast<int>(place.round);
    const auto own = values.part(place.block * lines * length, std::int64_t{lines} * length);
    if constexpr (phase == 1) {
      transform.run_pass(pass, pass, place, lines, lines, threads);
    } else {
      const auto array = transform.before(phase == 0 ? 0 : plan.passes, place, lines);
      for (int i = place.thread; i < lines * length; i += threads) {
        const int line = plan.length.quotient(i);
        if constexpr (phase == 0) array.at(line, i - line * length) = own[i];
        else own[i] = array.at(line, i - line * length);
      }
    }
  }
};

template <typename T>
double error_of(std::int64_t length, int lines, ops::EmulatedOrder order) {
  auto values = normal({2, lines, length}, complex_dtype_of<T>(), 3);
  const auto expected = at::fft_fft(values.to(torch::kComplexDouble));
  const auto roots = ops::line_roots(length).to(complex_dtype_of<T>());
  const LinesBody<T> body{LinePlan::of(length), ops::device_array<const ops::ComplexValue<T>>(roots),
                          ops::device_array<ops::ComplexValue<T>>(values), lines};
  ops::emulate_body(body, order);
  return relative_error(values, expected);
}

}  // namespace

TEMPLATE_TEST_CASE("lines of a block are transformed at every length that has a plan", "[ops][fft][cuda][quick]", float, double) {
  const auto bound = tolerance<TestType>(2e-15, 6e-7);
  int lengths = 0;
  for (std::int64_t length = 1; length <= LinePlan::longest; length += length < 400 ? 1 : length / 8) {
    if (!LinePlan::exists(length)) continue;
    CAPTURE(length);
    CHECK(error_of<TestType>(length, 1 + lengths++ % 5, ops::EmulatedOrder::ascending) < bound);
  }
  CHECK(lengths > 60);
  for (const std::int64_t length : {512, 1024, 2048, 4096, 8192, 625, 6561, 7500}) {
    CAPTURE(length);
    CHECK(error_of<TestType>(length, 3, ops::EmulatedOrder::descending) < bound);
  }
}

TEST_CASE("lines that a block cannot transform have no plan", "[ops][fft][cuda][quick]") {
  for (const std::int64_t length : {0, 7, 14, 1022, 8191, 8193, 16384, -4}) {
    CAPTURE(length);
    CHECK_FALSE(LinePlan::exists(length));
  }
}

TEST_CASE("divisions by a known number are those of integers", "[ops][cuda][quick]") {
  int wrong = 0;
  for (int divisor = 1; divisor <= 8192; divisor += divisor < 300 ? 1 : 97) {
    const auto known = ops::Divisor::of(divisor);
    for (int number = 0; number < 8 * 8192; number += number < 2000 ? 1 : 61)
      wrong += known.quotient(number) == number / divisor ? 0 : 1;
    for (int quotient = 1; quotient * divisor < 8 * 8192; ++quotient) {
      wrong += known.quotient(quotient * divisor) == quotient ? 0 : 1;
      wrong += known.quotient(quotient * divisor - 1) == quotient - 1 ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}
