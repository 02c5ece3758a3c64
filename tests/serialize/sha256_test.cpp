#include "catch.h"

#include <algorithm>
#include <string>
#include <vector>

#include <mpol_cpp/serialize/sha256.h>

using namespace mpol;

namespace {

std::string digest(const std::string& text) { return sha256(text.data(), text.size()); }

/// Bytes that differ from block to block.
std::vector<std::uint8_t> varied_bytes(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>((i * 2654435761u) >> 13);
  return bytes;
}

}  // namespace

// Source: NIST's examples for FIPS 180-4 and the short messages of its validation system.
TEST_CASE("SHA-256 gives NIST's digests", "[serialize][quick]") {
  CHECK(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopq"
               "rstu") == "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  CHECK(digest(std::string(1, '\xd3')) == "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
  CHECK(digest(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 of a stream does not depend on how it is cut", "[serialize][quick]") {
  const auto bytes = varied_bytes(1000);
  for (const std::size_t size : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000}) {
    const auto whole = sha256(bytes.data(), size);
    for (const std::size_t piece : {1, 7, 63, 64, 65, 200}) {
      Sha256 hash;
      for (std::size_t at = 0; at < size; at += piece) hash.update(bytes.data() + at, std::min(piece, size - at));
      CHECK(hash.finish() == whole);
    }
  }
}
