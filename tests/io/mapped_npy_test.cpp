#include "catch.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/io/mapped_npy.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "../compare.h"
#include "../python.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

TEST_CASE("a mapped member of an archive holds what was written", "[io][quick]") {
  const TemporaryFolder folder;
  const auto data = normal({3, 70}, torch::kComplexFloat, 1), u = normal({70}, torch::kFloat64, 2);
  io::write_npz_arrays(folder / "vis.npz", {{"data", data}, {"uu", u}}, io::Compression::stored);
  CHECK(same(io::map_npz_member(folder / "vis.npz", "data").read(1, 3), data.slice(0, 1, 3)));
  CHECK(same(io::map_npz_member(folder / "vis.npz", "uu").read(0, 70), u));
  CHECK_THROWS_WITH(io::map_npz_member(folder / "vis.npz", "weight"), ContainsSubstring("'weight' is missing"));
  io::write_npz_arrays(folder / "packed.npz", {{"uu", u}}, io::Compression::deflated);
  CHECK_THROWS_WITH(io::map_npz_member(folder / "packed.npz", "uu"), ContainsSubstring("numpy.savez"));
}

TEST_CASE("numpy's own files are mapped, and what cannot be is refused", "[io]") {
  const TemporaryFolder folder;
  run_python(
      "import sys, numpy\n"
      "a = numpy.arange(60.0).reshape(20, 3)\n"
      "numpy.save(sys.argv[1] + '/c.npy', a)\n"
      "numpy.save(sys.argv[1] + '/fortran.npy', numpy.asfortranarray(a))\n"
      "numpy.save(sys.argv[1] + '/swapped.npy', a.astype('>f8'))\n"
      "numpy.save(sys.argv[1] + '/text.npy', numpy.array(['a', 'b']))\n"
      "numpy.savez(sys.argv[1] + '/a.npz', a=a, b=a.astype('c8'))\n",
      {folder.path().string()});
  const auto values = torch::arange(60, torch::kFloat64).reshape({20, 3});
  CHECK(same(io::map_npy(folder / "c.npy").read(0, 20), values));
  CHECK(same(io::map_npz_member(folder / "a.npz", "a").read(5, 20), values.slice(0, 5, 20)));
  CHECK(same(io::map_npz_member(folder / "a.npz", "b").read(5, 6), values.slice(0, 5, 6).to(torch::kComplexFloat)));
  for (const auto* name : {"fortran.npy", "swapped.npy", "text.npy"}) {
    INFO(name);
    CHECK_THROWS_AS(io::map_npy(folder / name), Error);
  }
  CHECK_THROWS_AS(io::map_npy(folder / "missing.npy"), FileError);
}

TEST_CASE("every truncation of a mapped archive is an error, and no damage does worse", "[io][quick]") {
  const TemporaryFolder folder;
  const auto values = normal({8}, torch::kFloat64, 1);
  io::write_npz_arrays(folder / "whole.npz", {{"x", values}}, io::Compression::stored);
  std::ifstream file(folder / "whole.npz", std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const auto path = folder / "damaged.npz";
  const auto write = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(whole.substr(0, length));
    CHECK_THROWS_AS(io::map_npz_member(path, "x"), FileError);
  }
  int read = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    write(damaged);
    try {
      const auto array = io::map_npz_member(path, "x");
      if (array.rows() > 0) array.read(0, 1);
      ++read;
    } catch (const Error&) {
    }
  }
  CHECK(read > 0);  // a flipped bit of the values is not seen: no checksum is verified
}

TEST_CASE("the normal operator of a file is made of its blocks, each read once", "[io][normal][quick]") {
  const TemporaryFolder folder;
  const GridCoords coords(0.03, 16);
  const std::int64_t nvis = 500, block = 120;
  const auto spread = [&](std::uint64_t seed) {
    return (uniform({nvis}, torch::kFloat64, seed) * 2 - 1) * (0.9 * coords.max_uv());
  };
  const auto path = folder / "vis.npz";
  io::write_npz_arrays(path,
                       {{"uu", spread(1)},
                        {"vv", spread(2)},
                        {"data", normal({nvis}, torch::kComplexFloat, 3)},
                        {"weight", uniform({nvis}, torch::kFloat32, 4) + 0.5}},
                       io::Compression::stored);
  const auto u = io::map_npz_member(path, "uu"), v = io::map_npz_member(path, "vv"), data = io::map_npz_member(path, "data"),
             weight = io::map_npz_member(path, "weight");
  NormalOperator normal_operator(coords, 1);
  for (std::int64_t begin = 0; begin < nvis; begin += block) {
    const auto end = std::min(nvis, begin + block);
    normal_operator.add(
        {Baselines::in_lambda(u.read(begin, end), v.read(begin, end)), data.read(begin, end), weight.read(begin, end)},
        ChannelMap::cube(1));
  }
  const auto whole = NormalOperator::of(coords, io::read_npz(path), ChannelMap::cube(1));
  CHECK(relative_error(normal_operator.kernel(), whole.kernel()) < 1e-12);
  CHECK(relative_error(normal_operator.dirty(), whole.dirty()) < 1e-12);
  CHECK(relative_error(normal_operator.constant(), whole.constant()) < 1e-13);
  CHECK(same(normal_operator.cell_counts(), whole.cell_counts()));
  CHECK(normal_operator.nvis() == nvis);
}
