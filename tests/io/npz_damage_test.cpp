#include "catch.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/io/npz_archive.h>

#include "../python.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::filesystem::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string message_of(const std::filesystem::path& path, const std::string& key = "x") {
  try {
    io::read_npz_array(path, key);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// A stored archive of one array "x" of 32 float64.
std::string small_archive(const TemporaryFolder& folder, io::Compression compression) {
  io::write_npz_arrays(folder / "small.npz", {{"x", at::arange(32, torch::kFloat64)}}, compression);
  return contents(folder / "small.npz");
}

/// True when the file is read as it was before the damage; false when it is refused by an Error. All else escapes.
bool read_unharmed(const std::filesystem::path& path) {
  try {
    const auto arrays = io::read_npz_arrays(path);
    const auto found = arrays.find("x");
    REQUIRE((found == arrays.end() || at::equal(found->second, at::arange(32, torch::kFloat64))));
    return true;
  } catch (const Error& error) {
    REQUIRE(std::string(error.what()).find("damaged.npz") != std::string::npos);
    return false;
  }
}

}  // namespace

TEST_CASE("missing, empty and foreign files are refused with the file's name", "[io][quick]") {
  const TemporaryFolder folder;
  CHECK_THAT(message_of(folder / "absent.npz"), ContainsSubstring("absent.npz: no such file"));
  CHECK_THAT(message_of(folder.path()), ContainsSubstring("is a folder"));
  write(folder / "empty.npz", "");
  CHECK_THAT(message_of(folder / "empty.npz"), ContainsSubstring("the file is empty (0 bytes)"));
  write(folder / "text.npz", std::string(5000, 'x'));
  CHECK_THAT(message_of(folder / "text.npz"), ContainsSubstring("text.npz: cannot be read as a .npz (zip) archive"));
  small_archive(folder, io::Compression::stored);
  CHECK_THAT(message_of(folder / "small.npz", "uu"), ContainsSubstring("no array 'uu'; it holds x"));
}

TEST_CASE("a file that is cut short anywhere is refused", "[io][quick]") {
  const TemporaryFolder folder;
  const auto compression = GENERATE(io::Compression::stored, io::Compression::deflated);
  const auto whole = small_archive(folder, compression);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(folder / "damaged.npz", whole.substr(0, length));
    INFO("cut at " << length << " of " << whole.size());
    CHECK_FALSE(read_unharmed(folder / "damaged.npz"));
  }
}

TEST_CASE("a flipped bit never gives wrong numbers and never crashes", "[io]") {
  const TemporaryFolder folder;
  const auto compression = GENERATE(io::Compression::stored, io::Compression::deflated);
  const auto whole = small_archive(folder, compression);
  int refused = 0;
  for (std::size_t position = 0; position < whole.size(); ++position) {
    for (const int bit : {0, 3, 7}) {
      auto damaged = whole;
      damaged[position] = static_cast<char>(damaged[position] ^ (1 << bit));
      write(folder / "damaged.npz", damaged);
      INFO("bit " << bit << " of byte " << position);
      refused += read_unharmed(folder / "damaged.npz") ? 0 : 1;
    }
  }
  CHECK(refused > static_cast<int>(whole.size()));  // of three flips a byte: most; names and dates do not matter
}

TEST_CASE("bytes set to extremes never crash the reader", "[io]") {
  const TemporaryFolder folder;
  const auto whole = small_archive(folder, io::Compression::stored);
  for (std::size_t position = 0; position < whole.size(); ++position) {
    for (const char value : {'\x00', '\xff', '9', '('}) {
      auto damaged = whole;
      for (std::size_t i = position; i < std::min(position + 4, whole.size()); ++i) damaged[i] = value;
      write(folder / "damaged.npz", damaged);
      INFO("bytes from " << position << " set to " << static_cast<int>(value));
      read_unharmed(folder / "damaged.npz");
    }
  }
}

TEST_CASE("arrays that are no numbers, and headers that promise too much, are refused", "[io]") {
  const TemporaryFolder folder;
  run_python(R"(
import sys, zipfile, struct
import numpy as np
np.savez(sys.argv[1] + '/odd.npz', objects=np.array([1, 'a'], dtype=object), text=np.array(['a', 'b']), bytes=np.array([b'ab']),
         structured=np.zeros(3, dtype=[('a', 'f4'), ('b', 'i4')]), dates=np.array(['2020-01-01'], dtype='M8[D]'), half=np.zeros(3, 'f2'),
         long=np.zeros(3, np.longdouble), big=np.array([2**63], 'u8'))
def npy(header, data=b'', version=b'\x01\x00'):
    text = header.encode() + b'\n'
    size = struct.pack('<H', len(text)) if version[0] == 1 else struct.pack('<I', len(text))
    return b'\x93NUMPY' + version + size + text + data
h = "{{'descr': '{}', 'fortran_order': {}, 'shape': {}}}"
cases = {
  'promises': npy(h.format('<f8', False, '(1000000000000,)'), b'x' * 80),
  'overflow': npy(h.format('<f8', False, '(4294967296, 4294967296, 4294967296)')),
  'wrapped': npy(h.format('<f8', False, '(0, 4611686018427387904, 4611686018427387904)')),
  'longer': npy(h.format('<f8', False, '(2,)'), b'x' * 80),
  'negative': npy(h.format('<f8', False, '(-1,)')),
  'unclosed': npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,"),
  'unnamed': npy("{'fortran_order': False, 'shape': (3,)}"),
  'unknown': npy(h.format('<q9', False, '(3,)'), b'x' * 27),
  'size': npy(h.format('<f', False, '(3,)')),
  'rank': npy(h.format('<f8', False, '(' + '1,' * 40 + ')'), b'x' * 8),
  'version': npy(h.format('<f8', False, '()'), b'x' * 8, b'\x09\x00'),
  'length': b'\x93NUMPY\x02\x00\xff\xff\xff\x7f',
  'short': b'\x93NUM',
  'nothing': b'',
}
with zipfile.ZipFile(sys.argv[1] + '/headers.npz', 'w') as archive:
    for name, content in cases.items(): archive.writestr(name + '.npy', content)
with zipfile.ZipFile(sys.argv[1] + '/other.npz', 'w') as archive: archive.writestr('readme.txt', 'hello')
with zipfile.ZipFile(sys.argv[1] + '/bzip2.npz', 'w', zipfile.ZIP_BZIP2) as archive: archive.writestr('x.npy', npy(h.format('<f8', False, '()'), b'x' * 8))
)",
             {folder.path().string()});
  const auto refuses = [&](const char* file, const char* key, const char* words) {
    INFO(file << " " << key);
    CHECK_THAT(message_of(folder / file, key),
               ContainsSubstring(std::string(file)) && ContainsSubstring(key) && ContainsSubstring(words));
  };
  refuses("odd.npz", "objects", "Python objects");
  refuses("odd.npz", "text", "is text");
  refuses("odd.npz", "bytes", "is text");
  refuses("odd.npz", "structured", "structured");
  refuses("odd.npz", "dates", "dates or times");
  refuses("odd.npz", "half", "not a supported number");
  refuses("odd.npz", "long", "not a supported number");
  refuses("odd.npz", "big", "9223372036854775808");
  refuses("headers.npz", "promises", "needs 8000000000000 bytes, but 80 are there");
  refuses("headers.npz", "overflow", "does not fit any memory");
  refuses("headers.npz", "wrapped", "does not fit any memory");
  refuses("headers.npz", "longer", "needs 16 bytes, but 80 are there");
  refuses("headers.npz", "negative", "a dimension >= 0");
  refuses("headers.npz", "unclosed", "malformed");
  refuses("headers.npz", "unnamed", "malformed");
  refuses("headers.npz", "unknown", "not a supported number");
  refuses("headers.npz", "size", "malformed");
  refuses("headers.npz", "rank", "more than 32 dimensions");
  refuses("headers.npz", "version", ".npy version 9");
  refuses("headers.npz", "length", "malformed");
  refuses("headers.npz", "short", "not a .npy array");
  refuses("headers.npz", "nothing", "not a .npy array");
  CHECK_THAT(message_of(folder / "other.npz"), ContainsSubstring("without numpy arrays"));
  CHECK_THAT(message_of(folder / "bzip2.npz"), ContainsSubstring("compression method 12"));
}

TEST_CASE("a write that fails leaves the old file and no other", "[io][quick]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(io::write_npz_arrays(folder / "absent" / "a.npz", {{"x", at::arange(3)}}),
                    ContainsSubstring("No such file") && ContainsSubstring("create its folder"));
  io::write_npz_arrays(folder / "a.npz", {{"x", at::arange(3)}});
  CHECK_THROWS_AS(io::write_npz_arrays(folder / "a.npz", {{"x", at::arange(3).to(torch::kBFloat16)}}), DataError);
  CHECK(at::equal(io::read_npz_array(folder / "a.npz", "x"), at::arange(3)));
  CHECK(folder.count() == 1);
}
