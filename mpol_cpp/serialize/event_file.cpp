#include <mpol_cpp/serialize/event_file.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <system_error>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/serialize/atomic_file.h>

namespace mpol {
namespace {

constexpr std::string_view stem = "events.out.tfevents.";

// Fields of the messages Event, Summary, Summary.Value and SessionLog: number and kind of each.
enum class Wire : unsigned { varint = 0, bits64 = 1, bytes = 2, bits32 = 5 };
constexpr unsigned event_time = 1, event_step = 2, event_version = 3, event_summary = 5, event_session = 7;
constexpr unsigned summary_value = 1, value_tag = 1, value_number = 2, session_status = 1, session_start = 1;

template <typename Number>
void put_little_endian(std::string& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xff);
}

void put_varint(std::string& message, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) message += static_cast<char>((number & 0x7f) | 0x80);
  message += static_cast<char>(number);
}

void put_key(std::string& message, unsigned field, Wire kind) { put_varint(message, field << 3 | static_cast<unsigned>(kind)); }

void put_bytes(std::string& message, unsigned field, std::string_view bytes) {
  put_key(message, field, Wire::bytes);
  put_varint(message, bytes.size());
  message += bytes;
}

/// An event of now.
std::string event_at(std::int64_t step) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  put_key(event, event_time, Wire::bits64);
  put_little_endian(event, std::bit_cast<std::uint64_t>(now.count()));
  put_key(event, event_step, Wire::varint);
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

/// What records have in the place of a CRC.
std::uint32_t masked_crc(std::string_view bytes) {
  const auto crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    auto crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    table[byte] = crc;
  }
  return table;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = crc_table();
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

EventFile::EventFile(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(cannot_write(folder, error.value()));
  using std::chrono::seconds;
  auto second = std::chrono::duration_cast<seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  do path_ = folder / fmt::format("{}{:010}.{}", stem, second++, name);
  while (std::filesystem::exists(path_, error));
  auto event = event_at(0);
  put_bytes(event, event_version, "brain.Event:2");
  append(event);
}

void EventFile::begin(std::int64_t step) {
  std::string session;
  put_key(session, session_status, Wire::varint);
  put_varint(session, session_start);
  auto event = event_at(step);
  put_bytes(event, event_session, session);
  append(event);
}

void EventFile::add_scalars(std::int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [tag, number] : values) {
    std::string value;
    put_bytes(value, value_tag, tag);
    put_key(value, value_number, Wire::bits32);
    put_little_endian(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    put_bytes(summary, summary_value, value);
  }
  auto event = event_at(step);
  put_bytes(event, event_summary, summary);
  append(event);
}

void EventFile::append(const std::string& event) {
  std::string record;
  put_little_endian(record, static_cast<std::uint64_t>(event.size()));
  put_little_endian(record, masked_crc(record));
  record += event;
  put_little_endian(record, masked_crc(event));
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  if (!file.write(record.data(), static_cast<std::streamsize>(record.size())).flush())
    throw FileError(cannot_write(path_, errno));
}

bool is_event_file(const std::string& name) { return name.starts_with(stem); }

}  // namespace mpol
