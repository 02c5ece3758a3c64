#include "catch.h"

#include <cstring>
#include <fstream>
#include <random>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/serialize/safetensors.h>
#include <mpol_cpp/serialize/sha256.h>

#include "python.h"
#include "random.h"
#include "temporary_folder.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

NamedTensors tensors_of_all_kinds() {
  return {{"f32", normal({2, 3, 4}, torch::kFloat32, 1)},
          {"f64", normal({5}, torch::kFloat64, 2)},
          {"i64", torch::arange(7, torch::kInt64).view({7, 1})},
          {"i32", torch::arange(-3, 3, torch::kInt32)},
          {"u8", torch::arange(13, torch::kUInt8)},
          {"bool", torch::tensor({true, false, true})},
          {"c64", normal({2, 3}, torch::kComplexFloat, 3)},
          {"c128", normal({4}, torch::kComplexDouble, 4)},
          {"scalar", torch::tensor(2.5, torch::kFloat64)},
          {"empty", torch::zeros({0, 4}, torch::kFloat32)},
          {"strided", normal({6, 4}, torch::kFloat64, 5).t().slice(0, 0, 4, 2)},
          {"conjugate", normal({3}, torch::kComplexDouble, 6).conj()},
          {"with \"quotes\", commas and ä", torch::ones({2})}};
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A file with this header text and payload.
std::string with_header(const std::string& text, const std::string& payload = {}) {
  const std::uint64_t length = text.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes + text + payload;
}

}  // namespace

TEST_CASE("safetensors files give back what was written, bit for bit", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto tensors = tensors_of_all_kinds();
  const Metadata metadata = {{"key", "value"}, {"text", "a \"b\"\n\\ ä"}, {"empty", ""}};
  write_safetensors(folder / "a.safetensors", tensors, metadata);
  CHECK(folder.count() == 1);

  const auto file = read_safetensors(folder / "a.safetensors");
  CHECK(file.metadata == metadata);
  REQUIRE(file.tensors.size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    const auto& read = file.tensors.at(name);
    CHECK(read.scalar_type() == tensor.scalar_type());
    CHECK(read.sizes() == tensor.sizes());
    CHECK(at::equal(read, tensor.resolve_conj()));
  }
}

TEST_CASE("a file without tensors or metadata is a file", "[serialize][quick]") {
  const TemporaryFolder folder;
  write_safetensors(folder / "a.safetensors", {});
  const auto file = read_safetensors(folder / "a.safetensors");
  CHECK(file.tensors.empty());
  CHECK(file.metadata.empty());
}

TEST_CASE("what cannot be stored is refused", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  CHECK_THROWS_AS(write_safetensors(path, {{"half", torch::zeros({2}, torch::kHalf)}}), ValueError);
  CHECK_THROWS_AS(write_safetensors(path, {{"undefined", Tensor()}}), ValueError);
  CHECK_THROWS_AS(write_safetensors(path, {{"__metadata__", torch::zeros({2})}}), ValueError);
  CHECK_THROWS_AS(write_safetensors(path, {{"a", torch::zeros({2})}}, {{"latin1", "\xe4"}}), ValueError);
  CHECK_THROWS_AS(write_safetensors(folder / "missing" / "a.safetensors", {}), FileError);
  CHECK(folder.count() == 0);
}

TEST_CASE("every truncation of a file is seen", "[serialize][quick]") {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{"x", normal({9}, torch::kFloat32, 1)}, {"z", normal({2}, torch::kComplexDouble, 2)}},
                    {{"k", "v"}});
  const auto bytes = read_bytes(folder / "a");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    write_bytes(folder / "b", bytes.substr(0, size));
    CHECK_THROWS_AS(read_safetensors(folder / "b"), FileError);
  }
  write_bytes(folder / "b", bytes + '\0');
  CHECK_THROWS_AS(read_safetensors(folder / "b"), FileError);
}

TEST_CASE("every flipped bit of a file is seen", "[serialize][quick]") {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{"x", normal({9}, torch::kFloat32, 1)}, {"mask", torch::tensor({true, false})}}, {{"k", "v"}});
  const auto bytes = read_bytes(folder / "a");
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_bytes(folder / "b", damaged);
    INFO("bit " << bit);
    CHECK_THROWS_AS(read_safetensors(folder / "b"), FileError);
  }
}

TEST_CASE("random damage to a header without digests never does worse than an error", "[serialize][quick]") {
  const TemporaryFolder folder;
  const std::string header =
      R"({"x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"y":{"dtype":"I64","shape":[1],"data_offsets":[24,32]}})";
  const auto bytes = with_header(header, std::string(32, '\1'));
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    auto damaged = bytes;
    for (int changes = 0; changes < 1 + i % 4; ++changes) {
      damaged[random() % (8 + header.size())] =
          static_cast<char>(random() % 4 == 0 ? random() : " \"{}[]:,0123456789"[random() % 18]);
    }
    write_bytes(folder / "b", damaged);
    try {
      read_safetensors(folder / "b");
    } catch (const FileError&) {
    }
  }
  SUCCEED();
}

TEST_CASE("malformed headers are refused with the reason", "[serialize][quick]") {
  const TemporaryFolder folder;
  const auto check = [&](const std::string& bytes, const std::string& reason) {
    write_bytes(folder / "b", bytes);
    CHECK_THROWS_WITH(read_safetensors(folder / "b"), ContainsSubstring(reason));
  };
  const std::string four(4, '\0'), eight(8, '\0');
  const auto entry = [](const std::string& name, const std::string& shape, const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  check(with_header("{" + entry("x", "[1]", "[0,4]") + "," + entry("y", "[1]", "[0,4]") + "}", four), "overlap");
  check(with_header("{" + entry("x", "[1]", "[4,8]") + "}", eight), "hole");
  check(with_header("{" + entry("x", "[1]", "[0,4]") + "}", eight), "truncated or damaged");
  check(with_header("{" + entry("x", "[1]", "[0,4]") + "}"), "truncated or damaged");
  check(with_header("{" + entry("x", "[2]", "[0,4]") + "}", four), "not its size");
  check(with_header("{" + entry("x", "[1]", "[4,0]") + "}", four), "not its size");
  check(with_header("{" + entry("x", "[-1]", "[0,4]") + "}", four), "whole number");
  check(with_header("{" + entry("x", "[1.0]", "[0,4]") + "}", four), "whole number");
  check(with_header("{" + entry("x", "[4294967296,4294967296,4294967296]", "[0,4]") + "}", four), "too large");
  check(with_header("{" + entry("x", "[18446744073709551615]", "[0,4]") + "}", four), "too large");
  check(with_header("{" + entry("x", "[1]", "[0,4]") + "," + entry("x", "[1]", "[0,4]") + "}", four), "twice");
  check(with_header(R"({"x":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", four), "F16");
  check(with_header(R"({"x":{"shape":[1],"data_offsets":[0,4]}})", four), "dtype");
  check(with_header(R"({"__metadata__":{"a":1}})"), "not text");
  check(with_header(R"({"__metadata__":[]})"), "not an object");
  check(with_header("[]"), "not a JSON object");
  check(with_header("{"), "not JSON");
  check(with_header(R"({"__metadata__":{"payload_sha256":"0"}})"), "SHA-256");
  check(with_header(R"({"__metadata__":{"complex:x":"ComplexFloat"},)" + entry("x", "[1]", "[0,4]") + "}", four), "pairs");
  check(std::string(8, '\xff') + "{}", "claims");
  check("", "empty or truncated");
  CHECK_THROWS_WITH(read_safetensors(folder / "missing"), ContainsSubstring("no such file"));
  CHECK_THROWS_AS(read_safetensors(folder.path()), FileError);
}

TEST_CASE("Python's safetensors reads our files and we read its", "[serialize]") {
  const TemporaryFolder folder;
  const NamedTensors tensors = {{"f32", normal({2, 3, 4}, torch::kFloat32, 1)},  {"f64", normal({5}, torch::kFloat64, 2)},
                                {"i64", torch::arange(7, torch::kInt64)},        {"i32", torch::arange(3, torch::kInt32)},
                                {"u8", torch::arange(13, torch::kUInt8)},        {"bool", torch::tensor({true, false, true})},
                                {"c128", normal({4}, torch::kComplexDouble, 3)}, {"scalar", torch::tensor(2.5, torch::kFloat64)}};
  write_safetensors(folder / "ours.safetensors", tensors, {{"key", "value"}});
  const auto printed = run_python(R"(
import hashlib, json, struct, sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
ours, theirs = sys.argv[1:]
arrays = load_file(ours)
with safe_open(ours, "np") as f:
    metadata = f.metadata()
raw = open(ours, "rb").read()
(length,) = struct.unpack("<Q", raw[:8])
assert metadata["payload_sha256"] == hashlib.sha256(raw[8 + length:]).hexdigest()
assert metadata["key"] == "value" and metadata["complex:c128"] == "ComplexDouble"
assert arrays["c128"].shape == (4, 2) and arrays["scalar"].shape == () and arrays["scalar"] == 2.5
save_file(arrays, theirs, metadata={"key": "back"})
print(len(arrays))
)",
                                  {folder / "ours.safetensors", folder / "theirs.safetensors"});
  CHECK(printed == "8\n");
  const auto back = read_safetensors(folder / "theirs.safetensors");
  CHECK(back.metadata == Metadata{{"key", "back"}});
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    CHECK(at::equal(back.tensors.at(name), tensor.is_complex() ? at::view_as_real(tensor) : tensor));
  }
}
