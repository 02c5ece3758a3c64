#include "catch.h"

#include <filesystem>
#include <map>
#include <string>

#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/io/archives/folder_archive.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "../compare.h"
#include "../npy_files.h"
#include "../python.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

using Arrays = std::map<std::string, Tensor>;

template <typename T>
Arrays arrays_of(std::int64_t nchan, std::int64_t nvis) {
  return {{"uu", normal({nvis}, dtype_of<T>(), 1) * 1e5},
          {"vv", normal({nvis}, dtype_of<T>(), 2) * 1e5},
          {"weight", normal({nchan, nvis}, dtype_of<T>(), 3).abs() + 0.1},
          {"data", normal({nchan, nvis}, complex_dtype_of<T>(), 4)},
          {"frequency", torch::linspace(2.3e11, 2.4e11, nchan, torch::kFloat64)}};
}

void check_equal(const Visibilities& a, const Visibilities& b) {
  CHECK(same(a.data(), b.data()));
  CHECK(same(a.weights(), b.weights()));
  CHECK(same(a.baselines().u(), b.baselines().u()));
  CHECK(same(a.baselines().v(), b.baselines().v()));
  CHECK(same(a.frequencies(), b.frequencies()));
}

std::string refusal_of(const std::filesystem::path& path) {
  try {
    static_cast<void>(io::read_npz(path));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEMPLATE_TEST_CASE("a folder of .npy files is read like an archive of them", "[io][quick]", float, double) {
  const TemporaryFolder folder;
  const auto arrays = arrays_of<TestType>(3, 70);
  write_npy_folder(folder / "vis", arrays);
  io::write_npz_arrays(folder / "vis.npz", arrays);
  check_equal(io::read_npz(folder / "vis"), io::read_npz(folder / "vis.npz"));
  io::ReadOptions some;
  some.channels = {2, 0};
  some.conjugate = true;
  check_equal(io::read_npz(folder / "vis", some), io::read_npz(folder / "vis.npz", some));
}

TEST_CASE("numpy's own .npy files are read from a folder, texts and parts too", "[io]") {
  const TemporaryFolder folder;
  run_python(R"(
import sys, numpy as np
rng = np.random.default_rng(3)
data = rng.normal(size=(2, 50)) + 1j * rng.normal(size=(2, 50))
for key, value in dict(uu=rng.normal(size=50), vv=rng.normal(size=50).astype('>f8'), weight=np.asfortranarray(rng.random((2, 50)) + 1),
                       data_re=data.real, data_im=np.asfortranarray(data.imag), frequency=2.3e11, uv_unit='m', object='T Tau').items():
    np.save(f'{sys.argv[1]}/{key}.npy', value)
np.savez(f'{sys.argv[1]}/all.npz', **{key: np.load(f'{sys.argv[1]}/{key}.npy') for key in
         ('uu', 'vv', 'weight', 'data_re', 'data_im', 'frequency', 'uv_unit', 'object')})
)",
             {folder.path().string()});
  const auto read = io::read_npz(folder.path());  // the archive in it is another kind of file
  check_equal(read, io::read_npz(folder / "all.npz"));
  CHECK(read.baselines().frequencies().defined());
  CHECK(read.observation().object == "T Tau");
  CHECK(io::uv_unit_of(folder.path()) == io::UvUnit::metres);
}

TEST_CASE("a folder is visibilities when it holds .npy files and is no measurement set", "[io][quick]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  CHECK_FALSE(io::is_array_folder(folder / "empty"));
  CHECK_FALSE(io::is_array_folder(folder / "missing"));
  write_npy_folder(folder / "vis", arrays_of<float>(1, 5));
  CHECK(io::is_array_folder(folder / "vis"));
  CHECK_FALSE(io::is_array_folder(folder / "vis" / "uu.npy"));
  std::ofstream(folder / "vis" / "table.dat") << "a set";
  CHECK_FALSE(io::is_array_folder(folder / "vis"));
}

TEST_CASE("what a folder lacks, or a file that was cut, is named", "[io][quick]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "empty");
  CHECK_THAT(refusal_of(folder / "empty"), ContainsSubstring("a folder without .npy files"));
  auto arrays = arrays_of<double>(1, 40);
  arrays.erase("vv");
  write_npy_folder(folder / "vis", arrays);
  CHECK_THAT(refusal_of(folder / "vis"), ContainsSubstring("no array 'vv'") && ContainsSubstring("it holds data, frequency, uu"));
  write_npy_folder(folder / "vis", arrays_of<double>(1, 40));
  CHECK(refusal_of(folder / "vis") == "no error");
  const auto whole = std::filesystem::file_size(folder / "vis" / "data.npy");
  for (std::uintmax_t bytes = 0; bytes < whole; bytes += 7) {
    std::filesystem::resize_file(folder / "vis" / "data.npy", whole - 1 - bytes);
    CHECK_THAT(refusal_of(folder / "vis"), ContainsSubstring("array 'data'"));
  }
}
