#include "catch.h"

#include <fstream>
#include <limits>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/serialize/mapped_array.h>

#include "compare.h"
#include "random.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// Writes a tensor's numbers behind some bytes that shift them off any alignment.
ArrayLayout write_array(const std::filesystem::path& path, const Tensor& values) {
  std::ofstream file(path, std::ios::binary);
  file << "abc";
  file.write(static_cast<const char*>(values.const_data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  return {.path = path, .begin = 3, .shape = values.sizes().vec(), .dtype = values.scalar_type()};
}

}  // namespace

TEST_CASE("a mapped array gives the rows that were written, wherever they lie in the file", "[serialize][quick]") {
  const TemporaryFolder folder;
  for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kComplexFloat, torch::kComplexDouble}) {
    const auto values = normal({50, 3}, dtype, 1);
    const MappedArray array(write_array(folder / "array", values));
    CHECK(array.rows() == 50);
    CHECK(array.bytes() == static_cast<std::int64_t>(values.nbytes()));
    CHECK(same(array.read(0, 50), values));
    CHECK(same(array.read(17, 20), values.slice(0, 17, 20)));
    CHECK(array.read(50, 50).numel() == 0);
    const auto some = at::tensor({4, 4, 0, 49}, torch::kInt64);
    CHECK(same(array.read(some), values.index_select(0, some)));
    array.release();
    CHECK(same(array.read(0, 50), values));
  }
}

TEST_CASE("a mapped array outlives the one it was copied from", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto values = normal({5}, torch::kFloat64, 1);
  const auto copy = [&] {
    const MappedArray first(write_array(folder / "array", values));
    return MappedArray(first);
  }();
  CHECK(same(copy.read(0, 5), values));
}

TEST_CASE("rows that are not there and files that are too short are refused", "[serialize][quick]") {
  const TemporaryFolder folder;
  auto layout = write_array(folder / "array", normal({5, 2}, torch::kFloat64, 1));
  const MappedArray array(layout);
  CHECK_THROWS_AS(array.read(-1, 2), ValueError);
  CHECK_THROWS_AS(array.read(3, 2), ValueError);
  CHECK_THROWS_AS(array.read(0, 6), ValueError);
  CHECK_THROWS_AS(array.read(at::tensor({5}, torch::kInt64)), ValueError);
  CHECK_THROWS_AS(array.read(at::tensor({1.0})), ShapeError);
  const auto refuse = [&](std::vector<std::int64_t> shape) {
    layout.shape = std::move(shape);
    CHECK_THROWS_AS(MappedArray(layout), FileError);
  };
  refuse({6, 2});
  refuse({-1, 2});
  refuse({5, std::numeric_limits<std::int64_t>::max()});
  refuse({std::numeric_limits<std::int64_t>::max(), 2});
  layout.shape = {};
  CHECK_THROWS_AS(MappedArray(layout), ValueError);
  layout.path = folder / "missing";
  layout.shape = {1};
  CHECK_THROWS_AS(MappedArray(layout), FileError);
  layout.path = folder.path();
  CHECK_THROWS_AS(MappedArray(layout), FileError);
}
