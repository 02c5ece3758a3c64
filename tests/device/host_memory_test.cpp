#include "catch.h"

#include <mpol_cpp/device/host_memory.h>

using namespace mpol;

TEST_CASE("bytes in words have the unit that leaves digits before the point", "[device][quick]") {
  CHECK(memory_words(0) == "0 bytes");
  CHECK(memory_words(1023) == "1023 bytes");
  CHECK(memory_words(17 * 1024) == "17 KiB");
  CHECK(memory_words(512 * 0x1p20) == "512 MiB");
  CHECK(memory_words(3.2 * 0x1p30) == "3.2 GiB");
  CHECK(memory_words(1.5 * 0x1p40) == "1.5 TiB");
}
