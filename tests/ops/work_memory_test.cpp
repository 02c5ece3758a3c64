#include "catch.h"

#include <algorithm>
#include <cstdint>

#include <mpol_cpp/ops/memory/work_memory.h>

using namespace mpol;

TEST_CASE("blocks of working memory are aligned, and mapped once they are large", "[ops][quick]") {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100'000}, std::size_t{1} << 20, (std::size_t{5} << 20) + 3}) {
    CAPTURE(bytes);
    ops::WorkMemory block(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(block.data()) % ops::WorkMemory::alignment == 0);
    CHECK(block.mapped() == (bytes > 100'000));
    auto* values = static_cast<unsigned char*>(block.data());
    CHECK((!block.mapped() || std::all_of(values, values + bytes, [](unsigned char value) { return value == 0; })));
    std::fill_n(values, bytes, static_cast<unsigned char>(7));  // all of it may be written to
  }
}
