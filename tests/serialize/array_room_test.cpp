#include "catch.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <unistd.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/serialize/array_room.h>

#include "../temporary_folder.h"

using namespace mpol;

namespace {

/// Resident pages of this process that lie in files, bytes.
double resident_of_files() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0, of_files = 0;
  file >> size >> resident >> of_files;
  return of_files * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// TMPDIR for the time of a test.
class WithTmpdir {
 public:
  explicit WithTmpdir(const std::string& value) {
    if (const char* before = std::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", value.c_str(), 1);
  }
  ~WithTmpdir() {
    if (before_) ::setenv("TMPDIR", before_->c_str(), 1);
    else ::unsetenv("TMPDIR");
  }
  WithTmpdir(const WithTmpdir&) = delete;
  WithTmpdir& operator=(const WithTmpdir&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("arrays on disk hold what is written, in files without names", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto room = ArrayRoom::on_disk(folder.path());
  auto values = room.empty({3, 1000}, torch::kFloat64), flags = room.empty({5}, torch::kBool);
  values.copy_(at::arange(3000, torch::kFloat64).view({3, 1000}));
  flags.fill_(true);
  CHECK(folder.count() == 0);
  CHECK(at::equal(values, at::arange(3000, torch::kFloat64).view({3, 1000})));
  CHECK(flags.all().item<bool>());
  CHECK(is_on_disk(values));
  CHECK(is_on_disk(values[2]));
  CHECK_FALSE(is_on_disk(at::arange(3)));
  CHECK_FALSE(is_on_disk(ArrayRoom().empty({4}, torch::kFloat32)));
  CHECK(room.empty({0, 4}, torch::kFloat32).numel() == 0);
  const auto kept = values[1];
  values = torch::Tensor();  // a view keeps the file
  CHECK(kept[0].item<double>() == 1000);
}

TEST_CASE("arrays on disk do not stay in the memory of the process", "[serialize]") {
  const TemporaryFolder folder;
  const double before = resident_of_files();
  constexpr std::int64_t count = 64 << 20;  // 512 MiB
  auto values = ArrayRoom::on_disk(folder.path()).empty({count}, torch::kFloat64);
  constexpr std::int64_t block = 1 << 20;
  for (std::int64_t begin = 0; begin < count; begin += block) {
    values.narrow(0, begin, block).copy_(at::arange(begin, begin + block, torch::kFloat64));
  }
  double above = resident_of_files() - before;
  for (int wait = 0; above > 100e6 && wait < 500; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    above = resident_of_files() - before;
  }
  CHECK(above < 100e6);
  for (std::int64_t begin = 0; begin < count; begin += block) {
    REQUIRE(at::equal(values.narrow(0, begin, block), at::arange(begin, begin + block, torch::kFloat64)));
  }
}

TEST_CASE("a disk without room is refused before anything is written", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto room = ArrayRoom::on_disk(folder.path());
  CHECK_THROWS_WITH(room.empty({std::int64_t{1} << 50}, torch::kFloat32), ContainsSubstring("set TMPDIR"));
  CHECK_THROWS_AS(ArrayRoom::on_disk(folder / "missing").empty({10}, torch::kFloat32), FileError);
  CHECK(folder.count() == 0);
}

TEST_CASE("TMPDIR says where arrays on disk go, if there is room", "[serialize][quick]") {
  const TemporaryFolder folder;
  {
    const WithTmpdir chosen(folder.path().string());
    CHECK_THROWS_WITH(folder_for_arrays(1e18), ContainsSubstring("GB free"));
  }
  {
    const WithTmpdir missing((folder / "missing").string());
    CHECK_THROWS_WITH(folder_for_arrays(1), ContainsSubstring("missing No such file"));
  }
  if (std::filesystem::exists("/dev/shm")) {
    const WithTmpdir in_memory("/dev/shm");
    CHECK_THROWS_WITH(folder_for_arrays(1), ContainsSubstring("in memory itself"));
  }
}
