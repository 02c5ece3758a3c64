#include "catch.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include <mpol_cpp/device/host/host_allocator.h>
#include <mpol_cpp/device/host/host_memory.h>

using namespace mpol;

TEST_CASE("bytes in words have the unit that leaves digits before the point", "[device][quick]") {
  CHECK(memory_words(0) == "0 bytes");
  CHECK(memory_words(1023) == "1023 bytes");
  CHECK(memory_words(17 * 1024) == "17 KiB");
  CHECK(memory_words(512 * 0x1p20) == "512 MiB");
  CHECK(memory_words(3.2 * 0x1p30) == "3.2 GiB");
  CHECK(memory_words(1.5 * 0x1p40) == "1.5 TiB");
}

TEST_CASE("host memory that cannot be had is an error of its own type, and all else goes on as before", "[device][quick]") {
  const auto huge = [] { return at::empty({std::int64_t{1} << 50}, torch::kFloat64); };
  throw_typed_out_of_memory();
  throw_typed_out_of_memory();
  CHECK_THROWS_AS(huge(), c10::OutOfMemoryError);
  auto tensor = at::ones({1000}, torch::kFloat32);
  tensor.resize_({5000});
  CHECK(tensor.narrow(0, 0, 1000).sum().item<float>() == 1000);
  CHECK((tensor.clone() == tensor).narrow(0, 0, 1000).all().item<bool>());
  CHECK_THROWS_AS(tensor.view({7, 7}), c10::Error);
  try {
    tensor.view({7, 7});
  } catch (const c10::OutOfMemoryError&) {
    FAIL("an error of a shape counts as one of memory");
  } catch (const c10::Error&) {
  }
}

TEST_CASE("some memory is available here", "[device][quick]") {
  const auto available = available_memory();
  REQUIRE(available.has_value());
  CHECK(*available > 0x1p20);
  CHECK(*available < 0x1p60);
}
