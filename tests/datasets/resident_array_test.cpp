#include "catch.h"

#include <fstream>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/datasets/resident_array.h>

#include "compare.h"
#include "random.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("an array gives the same blocks wherever it is kept", "[datasets][quick]") {
  const TemporaryFolder folder;
  const auto values = normal({40, 2}, torch::kComplexFloat, 1);
  std::ofstream(folder / "array", std::ios::binary)
      .write(static_cast<const char*>(values.const_data_ptr()), static_cast<std::streamsize>(values.nbytes()));
  const MappedArray file({.path = folder / "array", .begin = 0, .shape = {40, 2}, .dtype = torch::kComplexFloat});
  const auto residency = GENERATE(DataResidency::device, DataResidency::host, DataResidency::disk);
  const ResidentArray array(file, residency, torch::kCPU);
  CHECK(array.rows() == 40);
  CHECK(array.residency() == residency);
  CHECK(same(array.read(3, 40), values.slice(0, 3, 40)));
  const auto some = at::tensor({7, 39, 0}, torch::kInt64);
  CHECK(same(array.read(some), values.index_select(0, some)));
  CHECK_THROWS_AS(array.read(0, 41), ValueError);
  CHECK_THROWS_AS(array.read(-1, 4), ValueError);
}

TEST_CASE("blocks come on the device, and only those", "[datasets][quick]") {
  const torch::Device meta(torch::kMeta);  // stands in for a GPU
  const auto values = normal({6}, torch::kFloat32, 1);
  const ResidentArray host(values, DataResidency::host, meta);
  CHECK(host.read(1, 3).is_meta());
  CHECK(host.read(at::tensor({1}, torch::kInt64)).is_meta());
  CHECK(ResidentArray(values, DataResidency::device, meta).read(1, 3).is_meta());
  CHECK(values.is_cpu());
  CHECK_THROWS_AS(ResidentArray(values, DataResidency::disk, meta), ValueError);
  CHECK_THROWS_AS(ResidentArray(values[0], DataResidency::host, meta), ValueError);
}
