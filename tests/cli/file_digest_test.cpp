#include "catch.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/ops/cat.h>

#include <mpol_cpp/cli/output/file_digest.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/serialize/sha256.h>

#include "cli/program.h"

using namespace mpol;
using namespace mpol::cli;
using namespace mpol::testing;

namespace {

std::string of(const std::string& bytes) { return sha256(bytes.data(), bytes.size()); }

std::filesystem::path write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// The digest that ranks find together, each of its share.
std::string found_by(const FileDigest& digest, std::int64_t ranks, std::int64_t threads) {
  std::vector<torch::Tensor> rows;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    rows.push_back(digest.of_pieces(share_of(digest.pieces(), rank, ranks), threads));
  return digest.whole(at::cat(rows));
}

std::string some_bytes(std::size_t count) {
  std::string bytes(count, ' ');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 37 + i / 251);
  return bytes;
}

}  // namespace

TEST_CASE("the digest of a file is its SHA-256, however many find it", "[cli][quick]") {
  const Scratch scratch;
  CHECK(sha256_of_file(write(scratch / "abc", "abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of_file(write(scratch / "empty", "")) == of(""));
  const auto bytes = some_bytes((3 << 20) + 17);
  const FileDigest digest({write(scratch / "large", bytes)});
  CHECK(digest.pieces() == 1);
  for (const std::int64_t ranks : {1, 3}) CHECK(found_by(digest, ranks, 2) == of(bytes));
}

TEST_CASE("a large file is digested in pieces", "[cli][quick]") {
  const Scratch scratch;
  constexpr DigestCut cut{.least = 3 << 20, .piece = 1 << 20};
  const auto bytes = some_bytes((3 << 20) + 17);
  const FileDigest digest({write(scratch / "large", bytes)}, cut);
  REQUIRE(digest.pieces() == 4);
  std::string digits;
  for (std::size_t begin = 0; begin < bytes.size(); begin += 1 << 20) digits += of(bytes.substr(begin, 1 << 20));
  for (const std::int64_t ranks : {1, 2, 5}) {
    for (const std::int64_t threads : {1, 3}) CHECK(found_by(digest, ranks, threads) == "1MiB:" + of(digits));
  }
  CHECK(found_by(FileDigest({write(scratch / "smaller", bytes.substr(0, (3 << 20) - 1))}, cut), 1, 1) ==
        of(bytes.substr(0, (3 << 20) - 1)));
}

TEST_CASE("the digest of several data has each, and that of a folder its files' names", "[cli][quick]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "arrays");
  write(scratch / "arrays" / "vv.npy", "v");
  write(scratch / "arrays" / "uu.npy", "u");
  write(scratch / "arrays" / "table.lock", "who has it");
  const auto folder = of("uu.npy:" + of("u") + "\nvv.npy:" + of("v") + "\n");
  CHECK(sha256_of_file(scratch / "arrays") == folder);
  const FileDigest digest({write(scratch / "a", "a"), scratch / "arrays"});
  CHECK(found_by(digest, 2, 1) == of("a") + "+" + folder);
}

TEST_CASE("data that cannot be digested are one error", "[cli][quick]") {
  const Scratch scratch;
  CHECK_THROWS_WITH(sha256_of_file(scratch / "none"), ContainsSubstring("is not there"));
  const auto path = write(scratch / "short", "some bytes");
  const FileDigest digest({path});
  std::filesystem::resize_file(path, 3);
  CHECK_THROWS_WITH(found_by(digest, 1, 1), ContainsSubstring("cannot be read to its end"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(found_by(digest, 1, 1), ContainsSubstring("went away"));
}
