#include "catch.h"

#include <vector>

#include <ATen/ops/cos.h>
#include <c10/util/Exception.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/device/chunks.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

[[noreturn]] void run_out_of_memory() { C10_THROW_ERROR(OutOfMemoryError, "the fake device is full"); }

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

}  // namespace

TEMPLATE_TEST_CASE("in chunks of any size value and gradient are those of one piece", "[device][quick]", float, double) {
  constexpr std::int64_t count = 1003;
  const auto dtype = dtype_of<TestType>();
  const auto matrix = normal({count, 12}, dtype, 1), data = normal({count}, dtype, 2), x = normal({12}, dtype, 3);
  const auto part = [&](const Tensor& at, std::int64_t begin, std::int64_t end) {
    const auto residual = at::cos(matrix.slice(0, begin, end).matmul(at)) - data.slice(0, begin, end);
    return residual.to(torch::kFloat64).pow(2).sum();
  };
  const auto whole = gradient_of([&](const Tensor& at) { return part(at, 0, count); }, x);
  for (const std::int64_t chunk : {1, 7, 100, 1002, 1003, 5000}) {
    INFO(chunk);
    Tensor gradient;
    const auto value = value_and_gradient_in_chunks(x, gradient, count, ChunkOptions().chunk(chunk), part);
    CHECK(relative_error(value, part(x, 0, count)) < tolerance<TestType>(1e-13, 1e-6));
    CHECK(gradient.scalar_type() == dtype);
    CHECK(relative_error(gradient, whole) < tolerance<TestType>(1e-13, 1e-5));
  }
  CHECK_FALSE(x.requires_grad());
}

TEST_CASE("chunks follow each other without gap, the last one as long as is left", "[device][quick]") {
  Ranges ranges;
  const auto note = [&](std::int64_t begin, std::int64_t end) { ranges.emplace_back(begin, end); };
  for_each_chunk(10, ChunkOptions().chunk(4), note);
  CHECK(ranges == Ranges{{0, 4}, {4, 8}, {8, 10}});
  ranges.clear();
  for_each_chunk(0, ChunkOptions().chunk(4), note);
  CHECK(ranges.empty());
  CHECK_THROWS_AS(for_each_chunk(10, ChunkOptions().chunk(0), note), ValueError);
}

TEST_CASE("a chunk that the device has no memory for is done again in halves, and counts once", "[device][quick]") {
  const auto x = normal({5}, torch::kFloat64, 1), weights = uniform({100, 5}, torch::kFloat64, 2);
  Ranges tried;
  const auto part = [&](const Tensor& at, std::int64_t begin, std::int64_t end) {
    tried.emplace_back(begin, end);
    auto sum = (weights.slice(0, begin, end) * at).pow(2).sum();
    if (begin == 32 && end - begin > 16) run_out_of_memory();
    return sum;
  };
  Tensor gradient;
  const auto value = value_and_gradient_in_chunks(x, gradient, 100, ChunkOptions().chunk(32), part);
  CHECK(tried == Ranges{{0, 32}, {32, 64}, {32, 48}, {48, 64}, {64, 80}, {80, 96}, {96, 100}});
  CHECK(relative_error(value, (weights * x).pow(2).sum()) < 1e-14);
  CHECK(relative_error(gradient, 2 * weights.pow(2).sum(0) * x) < 1e-14);
}

TEST_CASE("when half a chunk does not fit either, the error says what to reduce", "[device][quick]") {
  int tries = 0;
  const auto full = [&](std::int64_t, std::int64_t) {
    ++tries;
    run_out_of_memory();
  };
  const auto options = ChunkOptions().chunk(2048).bytes_per_item(0x1p20);
  CHECK_THROWS_WITH(for_each_chunk(10000, options, full), ContainsSubstring("1024 visibilities") &&
                                                              ContainsSubstring("1.0 GiB") && ContainsSubstring("are free") &&
                                                              ContainsSubstring("smaller"));
  CHECK(tries == 2);
  CHECK_THROWS_AS(for_each_chunk(1, options, full), DeviceError);
  const auto other = [](std::int64_t, std::int64_t) { throw DataError("not finite"); };
  CHECK_THROWS_AS(for_each_chunk(10, options, other), DataError);  // is not tried again
}

TEST_CASE("a budget of memory is a number of items", "[device][quick]") {
  CHECK(chunk_within(1000, 100) == 10);
  CHECK(chunk_within(1099, 100) == 10);
  CHECK_THROWS_AS(chunk_within(99, 100), ValueError);
  CHECK_THROWS_AS(chunk_within(100, 0), ValueError);
}
