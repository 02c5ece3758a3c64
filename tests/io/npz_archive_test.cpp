#include "catch.h"

#include <cmath>
#include <map>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/io/npz_archive.h>

#include "../compare.h"
#include "../golden.h"
#include "../python.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

constexpr torch::Dtype dtypes[] = {torch::kFloat32, torch::kFloat64, torch::kComplexFloat, torch::kComplexDouble, torch::kBool,
                                   torch::kUInt8,   torch::kInt8,    torch::kInt16,        torch::kInt32,         torch::kInt64};

Tensor numbers(at::IntArrayRef shape, torch::Dtype dtype) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  const auto values = (at::arange(count, torch::kFloat64) - 3).reshape(shape);
  if (!c10::isComplexType(dtype)) return (dtype == torch::kUInt8 ? values.abs() : values).to(dtype);
  return values.to(dtype) * c10::complex<double>(1, -0.5);
}

/// Every dtype, order, byte order and shape that can be read; the values are i - 3 (or |i - 3|, or (i - 3)(1 - 0.5 i)).
constexpr const char* write_fixtures = R"(
import sys, zipfile, io
import numpy as np
folder = sys.argv[1]
def values(shape, dtype):
    dtype = np.dtype(dtype)
    v = np.arange(int(np.prod(shape)), dtype=float).reshape(shape) - 3
    if dtype.kind == 'u': v = abs(v)
    return (v * (1 - 0.5j) if dtype.kind == 'c' else v).astype(dtype)
arrays = {}
for code in 'f4 f8 c8 c16 b1 u1 u2 u4 u8 i1 i2 i4 i8'.split():
    for name, order in (('little', '<'), ('big', '>')):
        for shape_name, shape in (('scalar', ()), ('one', (7,)), ('two', (3, 4)), ('three', (2, 3, 4)), ('none', (0, 3))):
            a = values(shape, order + code)
            arrays[f'{code}_{name}_C_{shape_name}'] = a
            arrays[f'{code}_{name}_F_{shape_name}'] = np.asfortranarray(a) if shape else a
np.savez(folder + '/stored.npz', **arrays)
np.savez_compressed(folder + '/deflated.npz', **arrays)
with zipfile.ZipFile(folder + '/versions.npz', 'w') as archive:
    for version in ((1, 0), (2, 0), (3, 0)):
        for forced in (False, True):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, values((3, 4), '<f8'), version=version)
            with archive.open(f'v{version[0]}_{"zip64" if forced else "zip32"}.npy', 'w', force_zip64=forced) as f:
                f.write(buffer.getvalue())
)";

torch::Dtype expected_dtype(const std::string& code) {
  const std::map<std::string, torch::Dtype> names{
      {"f4", torch::kFloat32}, {"f8", torch::kFloat64}, {"c8", torch::kComplexFloat}, {"c16", torch::kComplexDouble},
      {"b1", torch::kBool},    {"u1", torch::kUInt8},   {"u2", torch::kInt32},        {"u4", torch::kInt64},
      {"u8", torch::kInt64},   {"i1", torch::kInt8},    {"i2", torch::kInt16},        {"i4", torch::kInt32},
      {"i8", torch::kInt64}};
  return names.at(code);
}

std::vector<std::int64_t> expected_shape(const std::string& name) {
  const std::map<std::string, std::vector<std::int64_t>> shapes{
      {"scalar", {}}, {"one", {7}}, {"two", {3, 4}}, {"three", {2, 3, 4}}, {"none", {0, 3}}};
  return shapes.at(name);
}

}  // namespace

TEST_CASE("arrays survive a round trip in every dtype, shape and compression", "[io][quick]") {
  const TemporaryFolder folder;
  const auto compression = GENERATE(io::Compression::stored, io::Compression::deflated);
  std::map<std::string, Tensor> arrays;
  for (const auto dtype : dtypes) {
    const std::string name = c10::toString(dtype);
    arrays[name + "_scalar"] = numbers({}, dtype);
    arrays[name + "_line"] = numbers({1000}, dtype);
    arrays[name + "_plane"] = numbers({5, 7}, dtype);
    arrays[name + "_none"] = numbers({0, 3}, dtype);
    arrays[name + "_transposed"] = numbers({4, 3, 2}, dtype).permute({2, 0, 1});
  }
  arrays["conjugated"] = numbers({6}, torch::kComplexDouble).conj();
  io::write_npz_arrays(folder / "a.npz", arrays, compression);
  const auto read = io::read_npz_arrays(folder / "a.npz");
  REQUIRE(read.size() == arrays.size());
  for (const auto& [key, array] : arrays) {
    INFO(key);
    CHECK(same(read.at(key), array));
  }
  CHECK(folder.count() == 1);
}

TEST_CASE("numpy's files of every dtype, order, byte order and version are read", "[io]") {
  const TemporaryFolder folder;
  run_python(write_fixtures, {folder.path().string()});
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const auto arrays = io::read_npz_arrays(folder / file);
    REQUIRE(arrays.size() == std::size_t{13} * 2 * 2 * 5);
    for (const auto& [key, array] : arrays) {
      INFO(file << " " << key);
      const auto code = key.substr(0, key.find('_'));
      const auto shape = expected_shape(key.substr(key.rfind('_') + 1));
      const auto expected = numbers(shape, expected_dtype(code));
      CHECK(same(array, code[0] == 'u' ? expected.abs() : expected));
      CHECK(array.is_contiguous());
    }
  }
  const auto versions = io::read_npz_arrays(folder / "versions.npz");
  REQUIRE(versions.size() == 6);
  for (const auto& [key, array] : versions) CHECK(same(array, numbers({3, 4}, torch::kFloat64)));
}

TEST_CASE("numpy reads what is written", "[io]") {
  const TemporaryFolder folder;
  io::NpzWriter writer;
  for (const auto dtype : dtypes) writer.add(c10::toString(dtype), numbers({2, 5}, dtype));
  writer.add("scalar", at::scalar_tensor(2.5, torch::kFloat64));
  writer.add_text("text", "HD 142527 µ€😀");
  writer.write(folder / "a.npz");
  const auto output = run_python(R"(
import sys, zipfile
import numpy as np
assert zipfile.ZipFile(sys.argv[1]).testzip() is None
with np.load(sys.argv[1]) as arrays:
    for key in ('Float', 'Double', 'ComplexFloat', 'ComplexDouble', 'Bool', 'Byte', 'Char', 'Short', 'Int', 'Long'):
        a = arrays[key]
        v = np.arange(10.0).reshape(2, 5) - 3
        if key == 'Byte': v = abs(v)
        np.testing.assert_array_equal(a, (v * (1 - 0.5j) if a.dtype.kind == 'c' else v).astype(a.dtype))
        print(a.dtype.str, end=' ')
    assert arrays['scalar'] == 2.5 and arrays['scalar'].shape == ()
    assert arrays['text'] == 'HD 142527 \u00b5\u20ac\U0001f600', arrays['text']
)",
                                 {(folder / "a.npz").string()});
  CHECK(output == "<f4 <f8 <c8 <c16 |b1 |u1 |i1 <i2 <i4 <i8 ");
  CHECK(io::NpzReader(folder / "a.npz").read_text("text") == "HD 142527 µ€😀");
}

TEST_CASE("arrays longer than a block are read whole, swapped and interleaved ones too", "[io]") {
  const TemporaryFolder folder;
  run_python(R"(
import sys
import numpy as np
a = np.arange(3 * 700_001, dtype='f8').reshape(3, 700_001)
np.savez(sys.argv[1], plain=a, swapped=a.astype('>f8'), fortran=np.asfortranarray(a), wide=np.asfortranarray(a.T), unsigned=a.astype('>u4'))
)",
             {(folder / "a.npz").string()});
  const auto expected = at::arange(3 * 700001, torch::kFloat64).reshape({3, 700001});
  const io::NpzReader reader(folder / "a.npz");
  for (const char* key : {"plain", "swapped", "fortran"}) {
    INFO(key);
    CHECK(same(reader.read(key), expected));
    auto rows = at::empty({2, 700001}, torch::kFloat32);
    reader.read_rows_into(key, {2, 0}, rows);
    CHECK(same(rows, expected.index_select(0, at::tensor({2, 0})).to(torch::kFloat32)));
  }
  CHECK(same(reader.read("wide"), expected.t()));
  CHECK(same(reader.read("unsigned"), expected.to(torch::kInt64)));
  auto strided = at::zeros({3, 700001, 2}, torch::kFloat64);
  reader.read_into("fortran", strided.select(2, 1));
  CHECK(same(strided.select(2, 1).contiguous(), expected));
  CHECK(strided.select(2, 0).abs().max().item<double>() == 0);
}

TEST_CASE("the same arrays give the same bytes", "[io][quick]") {
  const TemporaryFolder folder;
  for (const char* name : {"a.npz", "b.npz"})
    io::write_npz_arrays(folder / name, {{"x", numbers({30}, torch::kFloat64)}, {"y", numbers({2}, torch::kInt64)}});
  CHECK(run_command("cmp " + (folder / "a.npz").string() + " " + (folder / "b.npz").string()).empty());
}

TEST_CASE("golden data are read in the dtypes their README names", "[io][quick]") {
  const Golden golden("dataset");
  const auto npix = golden.number<std::int64_t>("in_npix");
  const auto nchan = golden.number<std::int64_t>("in_nchan");
  CHECK(golden("in_image_sky").sizes() == at::IntArrayRef{nchan, npix, npix});
  CHECK(golden("in_data").scalar_type() == torch::kComplexDouble);
  CHECK(golden("in_weight").min().item<double>() > 0);
  CHECK_FALSE(golden.has("in_nothing"));
  CHECK_THROWS(golden("in_nothing"));
}
