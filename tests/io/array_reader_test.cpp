#include "catch.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/readers/array_reader.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>
#include <mpol_cpp/visibilities/join_samples.h>

#include "../compare.h"
#include "../npy_files.h"
#include "../python.h"
#include "../random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

using Arrays = std::map<std::string, Tensor>;

Arrays float_arrays(std::int64_t nchan, std::int64_t nvis) {
  return {{"uu", normal({nvis}, torch::kFloat64, 1) * 1e5},
          {"vv", normal({nvis}, torch::kFloat64, 2) * 1e5},
          {"weight", normal({nchan, nvis}, torch::kFloat32, 3).abs() + 0.1},
          {"data", normal({nchan, nvis}, torch::kComplexFloat, 4)}};
}

/// The samples of all channels as they are read block by block, and as they are read whole.
void check_blocks(const std::filesystem::path& path, const io::ReadOptions& options = {}) {
  const auto reader = io::open_npz(path, options);
  const auto streamed = io::collect_samples(*reader).visibilities, whole = join_samples({io::read_npz(path, options)});
  CHECK(same(streamed.data(), whole.data()));
  CHECK(same(streamed.weights(), whole.weights()));
  CHECK(relative_error(streamed.baselines().u(), whole.baselines().u()) < 1e-15);
  CHECK(relative_error(streamed.baselines().v(), whole.baselines().v()) < 1e-15);
  CHECK(reader->dropped() == io::DroppedSamples());
  CHECK_FALSE(reader->next().has_value());
}

/// Some of the samples of each channel, and the same of the file read whole.
void check_parts(const std::filesystem::path& path, io::ReadOptions options = {}) {
  const auto whole = io::read_npz(path, options);
  const auto nvis = whole.nvis();
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>(0, nvis / 3), {nvis / 3, nvis - 1}, {nvis - 1, nvis}}) {
    INFO(path << " " << begin << " to " << end);
    options.samples = {begin, end};
    const auto part = io::read_npz(path, options), wanted = whole.select(at::arange(begin, end, torch::kInt64));
    CHECK(same(part.data(), wanted.data()));
    CHECK(same(part.weights(), wanted.weights()));
    CHECK(same(part.baselines().u(), wanted.baselines().u()));
    CHECK(same(part.baselines().v(), wanted.baselines().v()));
    check_blocks(path, options);
  }
  options.samples = {0, nvis + 1};
  CHECK_THROWS_WITH(io::read_npz(path, options), ContainsSubstring(fmt::format("there are [0, {})", nvis)));
  options.samples = {3, 3};
  CHECK_THROWS_AS(io::read_npz(path, options), ValueError);
}

}  // namespace

TEST_CASE("a part of the samples is read as of the whole file", "[io][readers]") {
  const TemporaryFolder folder;
  constexpr std::int64_t nvis = 3001;
  auto arrays = float_arrays(3, nvis);
  io::write_npz_arrays(folder / "stored.npz", arrays, io::Compression::stored);
  io::write_npz_arrays(folder / "deflated.npz", arrays, io::Compression::deflated);
  write_npy_folder(folder / "vis", arrays);
  io::ReadOptions some;
  some.channels = {2, 0};
  some.conjugate = true;
  for (const auto* name : {"stored.npz", "deflated.npz", "vis"}) {
    check_parts(folder / name);
    check_parts(folder / name, some);
  }
  arrays.emplace("data_re", at::real(arrays.at("data")).contiguous());
  arrays.emplace("data_im", at::imag(arrays.at("data")).contiguous());
  arrays.erase("data");
  arrays.at("weight") = arrays.at("weight")[0];  // for all channels
  arrays.at("uu") = arrays.at("uu").expand({3, nvis}).contiguous();
  arrays.at("vv") = arrays.at("vv").expand({3, nvis}).contiguous();
  io::write_npz_arrays(folder / "parts.npz", arrays);
  check_parts(folder / "parts.npz", some);
  run_python(R"(
import sys, numpy as np
rng = np.random.default_rng(5)
shape = 3, 3001
np.savez(sys.argv[1], uu=rng.normal(size=shape[1]), vv=rng.normal(size=shape[1]).astype('>f8'),
         weight=np.asfortranarray(rng.random(shape) + 1, dtype='>f4'),
         data=np.asfortranarray(rng.normal(size=shape) + 1j * rng.normal(size=shape), dtype='c8'))
)",
             {(folder / "fortran.npz").string()});
  check_parts(folder / "fortran.npz", some);
}

TEST_CASE("blocks of a file hold the samples of the file read whole", "[io][readers]") {
  const TemporaryFolder folder;
  constexpr std::int64_t nvis = (1 << 18) + 1000;  // more than one block
  auto arrays = float_arrays(2, nvis);
  io::write_npz_arrays(folder / "stored.npz", arrays, io::Compression::stored);
  io::write_npz_arrays(folder / "deflated.npz", arrays, io::Compression::deflated);
  write_npy_folder(folder / "vis", arrays);
  for (const auto* name : {"stored.npz", "deflated.npz", "vis"}) {
    INFO(name);
    check_blocks(folder / name);
  }
  arrays.emplace("data_re", at::real(arrays.at("data")).contiguous());
  arrays.emplace("data_im", at::imag(arrays.at("data")).contiguous());
  arrays.erase("data");
  arrays.at("weight") = arrays.at("weight")[0];  // for both channels
  io::write_npz_arrays(folder / "parts.npz", arrays);
  check_blocks(folder / "parts.npz");
}

TEST_CASE("channels are windows in the order in which they are selected, in their unit and frequency", "[io][readers][quick]") {
  const TemporaryFolder folder;
  auto arrays = float_arrays(4, 50);
  arrays.emplace("frequency", torch::linspace(2.3e11, 2.6e11, 4, torch::kFloat64));
  io::write_npz_arrays(folder / "vis.npz", arrays);
  io::ReadOptions options;
  options.channels = {3, 0, 2};
  options.conjugate = true;
  for (const auto unit : {io::UvUnit::lambda, io::UvUnit::klambda, io::UvUnit::metres}) {
    options.uv_unit = unit;
    check_blocks(folder / "vis.npz", options);
  }
  const auto reader = io::open_npz(folder / "vis.npz", options);
  REQUIRE(reader->shape().windows.size() == 3);
  CHECK(reader->shape().windows[0].id == 3);
  CHECK_THAT(reader->shape().windows[2].frequencies.item<double>(), WithinAbs(2.5e11, 1));
}

TEST_CASE("arrays in Fortran order and of the other byte order come in the same blocks", "[io][readers]") {
  const TemporaryFolder folder;
  run_python(R"(
import sys, numpy as np
rng = np.random.default_rng(5)
shape = 3, 4000
np.savez(sys.argv[1], uu=np.asfortranarray(rng.normal(size=shape)), vv=rng.normal(size=shape).astype('>f8'),
         weight=np.asfortranarray(rng.random(shape) + 1, dtype='>f4'),
         data=np.asfortranarray(rng.normal(size=shape) + 1j * rng.normal(size=shape), dtype='c8'))
)",
             {(folder / "vis.npz").string()});
  check_blocks(folder / "vis.npz");
}

TEST_CASE("one channel is a cube with the same u and v, whatever their unit", "[io][readers][quick]") {
  const TemporaryFolder folder;
  auto arrays = float_arrays(1, 50);
  arrays.emplace("frequency", torch::full({1}, 2.3e11, torch::kFloat64));
  io::write_npz_arrays(folder / "vis.npz", arrays);
  for (const auto unit : {io::UvUnit::lambda, io::UvUnit::klambda, io::UvUnit::metres}) {
    io::ReadOptions options;
    options.uv_unit = unit;
    const auto cube = io::collect_cube(*io::open_npz(folder / "vis.npz", options)).visibilities,
               whole = io::read_npz(folder / "vis.npz", options);
    CHECK(relative_error(cube.baselines().channel(0).first, whole.baselines().channel(0).first) < 1e-15);
    CHECK(same(cube.data(), whole.data()));
  }
}

TEST_CASE("samples that cannot be used are left out and counted, each once", "[io][readers][quick]") {
  const TemporaryFolder folder;
  auto arrays = float_arrays(1, 20);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  arrays.at("weight")[0][3] = 0;
  arrays.at("weight")[0][4] = -2;
  arrays.at("weight")[0][5] = nan;
  arrays.at("data")[0][4] = c10::complex<float>(nan, 0);  // counted already
  arrays.at("data")[0][6] = c10::complex<float>(0, std::numeric_limits<float>::infinity());
  arrays.at("uu")[7] = nan;
  io::write_npz_arrays(folder / "vis.npz", arrays);
  const auto read = io::collect_samples(*io::open_npz(folder / "vis.npz"));
  CHECK(read.visibilities.nvis() == 15);
  CHECK(read.dropped.without_weight == 2);
  CHECK(read.dropped.not_finite == 3);
  CHECK(read.dropped.total() == 5);
}

TEST_CASE("a damaged file is found out by its blocks", "[io][readers][quick]") {
  const TemporaryFolder folder;
  const auto arrays = float_arrays(1, 2000);
  io::write_npz_arrays(folder / "vis.npz", arrays, io::Compression::stored);
  std::fstream file(folder / "vis.npz", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(folder / "vis.npz") / 2));
  file.put('\x55').put('\x2a').put('\x3c');
  file.close();
  CHECK_THROWS_AS(io::collect_samples(*io::open_npz(folder / "vis.npz")), FileError);
}
