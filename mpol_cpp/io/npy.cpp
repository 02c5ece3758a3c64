#include <mpol_cpp/io/npy.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::io {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::int64_t largest_header = 65536;
constexpr std::size_t largest_rank = 32;
constexpr bool little_endian = std::endian::native == std::endian::little;

[[noreturn]] void malformed(std::string_view where, std::string_view what) {
  throw FileError(fmt::format("{}: malformed .npy header: {}; write the file again, for example with numpy.savez", where, what));
}

/// Reads the Python dictionary literal that describes the array.
class HeaderText {
 public:
  HeaderText(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  void skip_space() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
  }
  char peek() {
    skip_space();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++position_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) malformed(where_, fmt::format("'{}' expected at character {}", wanted, position_));
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed(where_, fmt::format("a quoted name expected at character {}", position_));
    const auto begin = ++position_;
    const auto end = text_.find(quote, begin);
    if (end == std::string_view::npos) malformed(where_, "a quoted name does not end");
    position_ = end + 1;
    return std::string(text_.substr(begin, end - begin));
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (text_.substr(position_, word.size()) == word) {
        position_ += word.size();
        return value;
      }
    }
    malformed(where_, fmt::format("True or False expected at character {}", position_));
  }
  std::int64_t dimension() {
    if (!std::isdigit(static_cast<unsigned char>(peek()))) {
      malformed(where_, fmt::format("a dimension >= 0 expected at character {}", position_));
    }
    std::int64_t value = 0;
    for (; position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])); ++position_) {
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, std::int64_t{text_[position_] - '0'}, &value)) {
        malformed(where_, "a dimension does not fit 64 bits");
      }
    }
    if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // long integers of Python 2
    return value;
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> dimensions;
    expect('(');
    while (!accept(')')) {
      dimensions.push_back(dimension());
      if (dimensions.size() > largest_rank) malformed(where_, fmt::format("more than {} dimensions", largest_rank));
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return dimensions;
  }

 private:
  std::string_view text_;
  std::string_view where_;
  std::size_t position_ = 0;
};

bool is_number(char kind, std::int64_t bytes) {
  switch (kind) {
    case 'f':
      return bytes == 4 || bytes == 8;
    case 'c':
      return bytes == 8 || bytes == 16;
    case 'b':
      return bytes == 1;
    case 'i':
    case 'u':
      return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    default:
      return false;
  }
}

void parse_descr(NpyHeader& header, std::string_view where) {
  const auto& descr = header.descr;
  const auto refuse = [&](std::string_view what) {
    throw DataError(fmt::format(
        "{}: dtype '{}' ({}); bool, integer, float32/64 and complex64/128 arrays can be read: convert it with numpy.astype",
        where, descr, what));
  };
  std::size_t at = 0;
  char order = '=';
  if (at < descr.size() && std::string_view("<>|=").find(descr[at]) != std::string_view::npos) order = descr[at++];
  if (at >= descr.size()) malformed(where, fmt::format("dtype '{}'", descr));
  header.kind = descr[at++] == '?' ? 'b' : descr[at - 1];
  if (header.kind == 'O') refuse("Python objects");
  if (header.kind == 'V') refuse("structured or raw records");
  if (header.kind == 'M' || header.kind == 'm') refuse("dates or times");
  std::int64_t size = 0;
  const auto digits = at;
  for (; at < descr.size() && std::isdigit(static_cast<unsigned char>(descr[at])) && at < digits + 9; ++at) {
    size = 10 * size + (descr[at] - '0');
  }
  if (descr == "?" || descr == "|?") size = 1;
  if (at != descr.size() || (digits == at && size == 0)) malformed(where, fmt::format("dtype '{}'", descr));
  header.item_bytes = header.kind == 'U' ? 4 * size : size;
  header.byte_swapped = (order == '<' && !little_endian) || (order == '>' && little_endian);
  if (!header.is_text() && !is_number(header.kind, size)) refuse("not a supported number");
}

}  // namespace

std::int64_t NpyHeader::count() const {
  std::int64_t product = 1;
  for (const auto dimension : shape) product *= dimension;
  return product;
}

torch::ScalarType NpyHeader::dtype() const {
  if (kind == 'u' && item_bytes == 2) return torch::kInt32;
  if (kind == 'u' && item_bytes > 2) return torch::kInt64;
  return stored_dtype();
}

torch::ScalarType NpyHeader::stored_dtype() const {
  switch (kind) {
    case 'f':
      return item_bytes == 4 ? torch::kFloat32 : torch::kFloat64;
    case 'c':
      return item_bytes == 8 ? torch::kComplexFloat : torch::kComplexDouble;
    case 'b':
      return torch::kBool;
    case 'u':
      if (item_bytes == 1) return torch::kUInt8;
      if (item_bytes == 2) return torch::kUInt16;
      return item_bytes == 4 ? torch::kUInt32 : torch::kInt64;
    case 'i':
      if (item_bytes == 1) return torch::kInt8;
      if (item_bytes == 2) return torch::kInt16;
      return item_bytes == 4 ? torch::kInt32 : torch::kInt64;
    default:
      throw DataError(fmt::format("dtype '{}' is text; numbers are needed here", descr));
  }
}

std::int64_t npy_header_bytes(std::string_view preamble, std::int64_t available, std::string_view where) {
  if (preamble.size() < 10 || preamble.substr(0, magic.size()) != magic) {
    throw FileError(fmt::format("{}: not a .npy array (its first bytes are not \\x93NUMPY); write it with numpy.savez", where));
  }
  const auto byte = [&](std::size_t at) { return static_cast<std::int64_t>(static_cast<unsigned char>(preamble[at])); };
  const auto version = byte(6);
  if (version < 1 || version > 3) {
    throw FileError(fmt::format("{}: .npy version {}; versions 1 to 3 can be read: write it with numpy.savez", where, version));
  }
  std::int64_t begin = 10;
  std::int64_t length = byte(8) + 256 * byte(9);
  if (version > 1) {
    if (preamble.size() < 12) malformed(where, "it ends within its length");
    begin = 12;
    length += 65536 * (byte(10) + 256 * byte(11));
  }
  if (length > largest_header || begin + length > available) {
    malformed(where,
              fmt::format("it promises {} bytes of {} that are there (at most {})", begin + length, available, largest_header));
  }
  return begin + length;
}

NpyHeader parse_npy_header(std::string_view bytes, std::string_view where) {
  NpyHeader header;
  header.header_bytes = npy_header_bytes(bytes, static_cast<std::int64_t>(bytes.size()), where);
  const std::size_t begin = bytes[6] == 1 ? 10 : 12;
  HeaderText text(bytes.substr(begin, static_cast<std::size_t>(header.header_bytes) - begin), where);
  bool has_descr = false, has_order = false, has_shape = false;
  text.expect('{');
  while (!text.accept('}')) {
    const auto key = text.quoted();
    text.expect(':');
    if (key == "descr") {
      if (text.peek() == '[' || text.peek() == '(' || text.peek() == '{') {
        throw DataError(fmt::format("{}: a structured array; save each field as an array of its own", where));
      }
      header.descr = text.quoted();
      has_descr = true;
    } else if (key == "fortran_order") {
      header.fortran_order = text.boolean();
      has_order = true;
    } else if (key == "shape") {
      header.shape = text.shape();
      has_shape = true;
    } else {
      malformed(where, fmt::format("unknown key '{}'", key));
    }
    if (!text.accept(',')) {
      text.expect('}');
      break;
    }
  }
  if (!has_descr || !has_order || !has_shape) malformed(where, "descr, fortran_order or shape is missing");
  parse_descr(header, where);
  // A zero anywhere makes the count zero, yet the other dimensions must still multiply without overflow.
  std::int64_t bytes_needed = std::max<std::int64_t>(header.item_bytes, 1);
  for (const auto dimension : header.shape) {
    if (__builtin_mul_overflow(bytes_needed, std::max<std::int64_t>(dimension, 1), &bytes_needed)) {
      malformed(where, fmt::format("shape {} does not fit any memory", shape_text(header.shape)));
    }
  }
  return header;
}

std::string npy_header(std::string_view descr, const std::vector<std::int64_t>& shape) {
  auto text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape_text(shape));
  const std::size_t preamble = 10;
  const auto padded = (preamble + text.size() + 1 + 63) / 64 * 64;
  text.append(padded - preamble - text.size() - 1, ' ');
  text.push_back('\n');
  std::string header(magic);
  header.push_back('\x01');
  header.push_back('\x00');
  header.push_back(static_cast<char>(text.size() & 0xff));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

std::string npy_descr(torch::ScalarType dtype) {
  const char order = little_endian ? '<' : '>';
  switch (dtype) {
    case torch::kFloat32:
      return fmt::format("{}f4", order);
    case torch::kFloat64:
      return fmt::format("{}f8", order);
    case torch::kComplexFloat:
      return fmt::format("{}c8", order);
    case torch::kComplexDouble:
      return fmt::format("{}c16", order);
    case torch::kBool:
      return "|b1";
    case torch::kUInt8:
      return "|u1";
    case torch::kInt8:
      return "|i1";
    case torch::kInt16:
      return fmt::format("{}i2", order);
    case torch::kInt32:
      return fmt::format("{}i4", order);
    case torch::kInt64:
      return fmt::format("{}i8", order);
    default:
      throw DataError(fmt::format("dtype {} has no counterpart in numpy: convert it with .to()", c10::toString(dtype)));
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace mpol::io
