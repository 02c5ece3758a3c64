#include <algorithm>
#include <map>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/io/mapped_npy.h>
#include <mpol_cpp/io/npy.h>
#include <mpol_cpp/io/npz_archive.h>
#include <mpol_cpp/io/visibilities_npz.h>

#include "input_file.h"
#include "random.h"
#include "readers.h"
#include "zip_bytes.h"

namespace mpol::testing {
namespace {

using Arrays = std::map<std::string, Tensor>;

std::string archive(const Arrays& arrays, io::Compression compression) {
  const auto path = input_folder() / "corpus.npz";
  io::write_npz_arrays(path, arrays, compression);
  return bytes_of(path);
}

/// Every way in which an array of an archive is read.
void read_every_way(const io::NpzReader& reader, const std::string& key) {
  const auto header = reader.header(key);
  if (header.is_text()) {
    reader.read_text(key);
    return;
  }
  const auto array = reader.read(key);
  if (header.shape.size() == 2 && header.shape[0] > 0) {
    const auto last = header.shape[0] - 1;
    reader.read_rows_into(key, {last, 0}, at::empty({2, header.shape[1]}, array.options()));
  }
}

std::string with_text(io::Compression compression) {
  io::NpzWriter writer;
  writer.add("x", at::arange(6, torch::kFloat64).reshape({2, 3}));
  writer.add_text("unit", "k\u03bb");
  const auto path = input_folder() / "corpus.npz";
  writer.write(path, compression);
  return bytes_of(path);
}

std::string npy_of(std::string_view descr, const std::vector<std::int64_t>& shape, std::size_t bytes) {
  std::string data;
  for (std::size_t i = 0; i < bytes; ++i) data += static_cast<char>(i % 3);
  return io::npy_header(descr, shape) + data;
}

std::string visibilities_file(std::int64_t nchan, torch::Dtype dtype, io::Compression compression) {
  constexpr std::int64_t nvis = 20;
  const auto complex = dtype == torch::kFloat32 ? torch::kComplexFloat : torch::kComplexDouble;
  Visibilities visibilities(Baselines::in_metres(normal({nvis}, dtype, 1) * 100, normal({nvis}, dtype, 2) * 100,
                                                 at::ones({nchan}, torch::kFloat64) * 3e11),
                            normal({nchan, nvis}, complex, 3), uniform({nchan, nvis}, dtype, 4) + 0.1);
  Observation observation;
  observation.right_ascension = 1.5;
  observation.declination = -0.5;
  observation.object = "disc";
  visibilities.set_observation(observation);
  const auto path = input_folder() / "corpus.npz";
  io::write_npz(path, visibilities, compression);
  return bytes_of(path);
}

}  // namespace

int fuzz_npz(const std::uint8_t* bytes, std::size_t size) {
  const auto path = input_file("input.npz", bytes, size);
  return refused([&] {
    const io::NpzReader reader(path);
    for (const auto& key : reader.keys()) read_every_way(reader, key);
    for (const auto& key : reader.keys()) refused([&] { io::map_npz_member(path, key).read(0, 1); });
  });
}

std::vector<std::string> npz_corpus() {
  const auto numbers = uniform({4, 5}, torch::kFloat32, 1);
  const Arrays several = {{"a", numbers}, {"b", numbers.to(torch::kComplexDouble)}, {"c", at::arange(7, torch::kInt16)}};
  return {archive(several, io::Compression::stored), archive(several, io::Compression::deflated),
          archive({{"mask", numbers > 0.5}, {"empty", numbers.slice(0, 0, 0)}}, io::Compression::stored),
          with_text(io::Compression::stored), with_text(io::Compression::deflated)};
}

int fuzz_npy(const std::uint8_t* bytes, std::size_t size) {
  const auto mapped = input_file("input.npy", bytes, size);
  const int first = refused([&] {
    const auto array = io::map_npy(mapped);
    array.read(0, array.rows());
  });
  // The same as a member of an archive whose checksum is right.
  const auto whole = zip_of("x.npy", {reinterpret_cast<const char*>(bytes), size});
  const auto path = input_file("input.npz", reinterpret_cast<const std::uint8_t*>(whole.data()), whole.size());
  const int second = refused([&] { read_every_way(io::NpzReader(path), "x"); });
  return first != 0 && second != 0 ? 1 : 0;
}

std::vector<std::string> npy_corpus() {
  auto columns = npy_of("<f4", {3, 4}, 48);
  columns.replace(columns.find("False"), 5, "True ");
  return {npy_of("<f8", {3, 4}, 96), npy_of(">c16", {5}, 80),
          npy_of("|b1", {2, 3}, 6),  npy_of("<u8", {2, 2}, 32),
          npy_of("<u2", {}, 2),      npy_of("<U3", {}, 12),
          npy_of("|S5", {1}, 5),     npy_of(">i4", {2, 1, 3}, 24),
          npy_of("<f8", {0, 3}, 0),  columns};
}

int fuzz_visibilities(const std::uint8_t* bytes, std::size_t size) {
  const auto path = input_file("input.npz", bytes, size);
  const int whole = refused([&] { io::read_npz(path); });
  io::ReadOptions one;
  one.channels = {1};
  one.frequencies = {1e11};
  const int one_channel = refused([&] { io::read_npz(path, one); });
  return whole != 0 && one_channel != 0 ? 1 : 0;
}

std::vector<std::string> visibilities_corpus() {
  return {visibilities_file(1, torch::kFloat64, io::Compression::stored),
          visibilities_file(2, torch::kFloat32, io::Compression::stored),
          visibilities_file(2, torch::kFloat64, io::Compression::deflated)};
}

std::string repair_zip(std::string bytes) {
  constexpr std::size_t local_bytes = 30, central_bytes = 46;
  for (auto at = bytes.find("PK\1\2"); at != std::string::npos && at + central_bytes <= bytes.size();
       at = bytes.find("PK\1\2", at + 4)) {
    const bool stored = number_at(bytes, at + 10, 2) == 0;
    const auto count = number_at(bytes, at + 20, 4), header = number_at(bytes, at + 42, 4);
    if (!stored || header + local_bytes > bytes.size()) continue;
    const auto begin = header + local_bytes + number_at(bytes, header + 26, 2) + number_at(bytes, header + 28, 2);
    if (begin + count > bytes.size()) continue;
    const auto sum = little_endian(crc32(std::string_view(bytes).substr(begin, count)), 4);
    bytes.replace(at + 16, 4, sum);
    bytes.replace(header + 14, 4, sum);
  }
  return bytes;
}

}  // namespace mpol::testing
