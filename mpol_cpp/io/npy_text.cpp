#include <mpol_cpp/io/npy_text.h>

#include <cstdint>
#include <cstring>

namespace mpol::io {
namespace {

constexpr char32_t replacement = U'?';

bool is_character(char32_t code) { return code < 0x110000 && (code < 0xd800 || code > 0xdfff); }

void append_utf8(std::string& text, char32_t code) {
  const auto tail = [&](int shift) { text.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3f))); };
  if (code < 0x80) {
    text.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    text.push_back(static_cast<char>(0xc0 | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    text.push_back(static_cast<char>(0xe0 | (code >> 12)));
    tail(6);
    tail(0);
  } else {
    text.push_back(static_cast<char>(0xf0 | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Takes the next character off the front of `utf8`.
char32_t next_character(std::string_view& utf8) {
  const auto lead = static_cast<unsigned char>(utf8.front());
  utf8.remove_prefix(1);
  if (lead < 0x80) return lead;
  const std::size_t following = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  if (following == 0 || following > utf8.size()) return replacement;
  char32_t code = lead & (0x3fU >> following);
  for (std::size_t i = 0; i < following; ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    if ((byte & 0xc0U) != 0x80) return replacement;
    code = (code << 6) | (byte & 0x3fU);
  }
  utf8.remove_prefix(following);
  return is_character(code) ? code : replacement;
}

}  // namespace

std::string utf8_of_numpy(std::string_view utf32, bool byte_swapped) {
  std::string text;
  for (std::size_t at = 0; at + 4 <= utf32.size(); at += 4) {
    std::uint32_t code = 0;
    std::memcpy(&code, utf32.data() + at, 4);
    if (byte_swapped) code = __builtin_bswap32(code);
    if (code == 0) break;
    append_utf8(text, is_character(code) ? static_cast<char32_t>(code) : replacement);
  }
  return text;
}

std::string numpy_of_utf8(std::string_view utf8) {
  std::string element;
  while (!utf8.empty()) {
    const char32_t code = next_character(utf8);
    element.append(reinterpret_cast<const char*>(&code), sizeof(code));
  }
  return element;
}

}  // namespace mpol::io
