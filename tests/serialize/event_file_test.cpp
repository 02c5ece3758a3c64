// Files of events, read by a reader of the test's own.
#include "catch.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/serialize/event_file.h>

#include "temporary_folder.h"

using namespace mpol;

namespace {

/// CRC-32C bit by bit, from its polynomial.
std::uint32_t slow_crc(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool low = ((crc >> 0) ^ (static_cast<unsigned char>(byte) >> bit)) & 1;
      crc = (crc >> 1) ^ (low ? 0x82f63b78U : 0U);
    }
  }
  return ~crc;
}

std::uint32_t unmasked(std::uint32_t masked) {
  const auto rotated = masked - 0xa282ead8U;
  return (rotated >> 17) | (rotated << 15);
}

/// Fields of a message in their order: number and content; of varints the number as eight bytes.
std::multimap<unsigned, std::string> fields(std::string_view message) {
  std::multimap<unsigned, std::string> found;
  const auto varint = [&message] {
    std::uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE_FALSE(message.empty());
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return number;
    }
  };
  while (!message.empty()) {
    const auto key = varint();
    const auto field = static_cast<unsigned>(key >> 3);
    if ((key & 7) == 0) {
      const auto number = varint();
      found.emplace(field, std::string(reinterpret_cast<const char*>(&number), 8));
      continue;
    }
    const auto size = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : varint();
    REQUIRE(size <= message.size());
    found.emplace(field, std::string(message.substr(0, size)));
    message.remove_prefix(size);
  }
  return found;
}

template <typename Number>
Number number_in(const std::string& bytes) {
  Number number;
  REQUIRE(bytes.size() == sizeof number);
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::vector<std::string> events_in(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> events;
  std::size_t at = 0;
  while (at < all.size()) {
    const auto size = number_in<std::uint64_t>(all.substr(at, 8));
    CHECK(unmasked(number_in<std::uint32_t>(all.substr(at + 8, 4))) == slow_crc(all.substr(at, 8)));
    events.push_back(all.substr(at + 12, size));
    CHECK(unmasked(number_in<std::uint32_t>(all.substr(at + 12 + size, 4))) == slow_crc(events.back()));
    at += size + 16;
  }
  return events;
}

}  // namespace

TEST_CASE("CRC-32C of known bytes", "[serialize][quick]") {
  CHECK(crc32c("123456789") == 0xe3069283U);  // RFC 3720's polynomial; the usual check value
  CHECK(crc32c("") == 0);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);  // RFC 3720, B.4
}

TEST_CASE("events come back with their steps, names and values, from records with the right checksums", "[serialize][quick]") {
  const TemporaryFolder folder;
  EventFile file(folder / "made", "test");
  CHECK(is_event_file(file.path().filename().string()));
  file.begin(10);
  file.add_scalars(10, {{"loss/total", 1.25}, {"flux_jy", -3e-7}});
  file.add_scalars(300, {{"loss/total", 0.5}});
  const auto events = events_in(file.path());
  REQUIRE(events.size() == 4);
  CHECK(fields(events[0]).find(3)->second == "brain.Event:2");
  CHECK(number_in<std::uint64_t>(fields(fields(events[1]).find(7)->second).find(1)->second) == 1);
  CHECK(number_in<double>(fields(events[2]).find(1)->second) > 1.7e9);
  CHECK(number_in<std::uint64_t>(fields(events[2]).find(2)->second) == 10);
  CHECK(number_in<std::uint64_t>(fields(events[3]).find(2)->second) == 300);
  std::map<std::string, float> values;
  const auto summary = fields(fields(events[2]).find(5)->second);
  for (auto [value, end] = summary.equal_range(1); value != end; ++value) {
    const auto parts = fields(value->second);
    values[parts.find(1)->second] = number_in<float>(parts.find(2)->second);
  }
  CHECK(values == std::map<std::string, float>{{"loss/total", 1.25F}, {"flux_jy", -3e-7F}});
  CHECK(EventFile(folder / "made", "test").path() != file.path());
}

TEST_CASE("events that cannot be written are an error", "[serialize][quick]") {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "no folder";
  CHECK_THROWS_AS(EventFile(folder / "file", "test"), FileError);
  EventFile file(folder / "gone", "test");
  std::filesystem::remove_all(folder / "gone");
  CHECK_THROWS_AS(file.add_scalars(1, {{"x", 1.0}}), FileError);
}
