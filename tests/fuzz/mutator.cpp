#include "mutator.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <utility>

namespace mpol::testing {
namespace {

constexpr std::size_t longest = 1 << 16;
constexpr std::array<std::string_view, 12> decimals = {
    "0",     "1",   "-1",   "9",     "2147483648", "4294967295", "9223372036854775807", "18446744073709551616",
    "1e999", "nan", "-0.0", "1e-320"};
constexpr std::string_view extremes("\x00\x01\x7f\x80\xff 09-+.eE(){}[]\"'\\,=#:\n\r\t", 29);

}  // namespace

Mutator::Mutator(std::vector<std::string> corpus, std::uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

std::uint64_t Mutator::below(std::uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }

template <typename List>
const auto& Mutator::one_of(const List& list) {
  return list[below(list.size())];
}

Mutator::Slice Mutator::slice_of(const std::string& bytes) {
  if (bytes.empty()) return {};
  const auto begin = below(bytes.size());
  const auto most = bytes.size() - begin;
  return {begin, 1 + below(below(2) == 0 ? std::min<std::size_t>(most, 16) : most)};
}

std::string Mutator::next() {
  auto bytes = one_of(corpus_);
  for (auto changes = 1 + below(5); changes > 0; --changes) change(bytes);
  bytes.resize(std::min(bytes.size(), longest));
  return bytes;
}

void Mutator::change(std::string& bytes) {
  using Change = void (Mutator::*)(std::string&);
  static constexpr std::array<Change, 11> changes = {&Mutator::flip_bit,     &Mutator::flip_bit,    &Mutator::set_extreme,
                                                     &Mutator::set_integer,  &Mutator::set_integer, &Mutator::set_decimal,
                                                     &Mutator::set_decimal,  &Mutator::cut_end,     &Mutator::cut_slice,
                                                     &Mutator::repeat_slice, &Mutator::take_slice};
  if (below(12) == 0) return exchange_slices(bytes);
  (this->*one_of(changes))(bytes);
}

void Mutator::flip_bit(std::string& bytes) {
  if (bytes.empty()) return;
  auto& byte = bytes[below(bytes.size())];
  byte = static_cast<char>(byte ^ (1 << below(8)));
}

void Mutator::set_extreme(std::string& bytes) {
  const auto slice = slice_of(bytes);
  const auto count = std::min<std::size_t>(slice.count, 1 + below(8));
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(slice.begin), count, one_of(extremes));
}

/// An integer of 1, 2, 4 or 8 bytes, of either order: an end of its range, the size of the file, or near one of them.
void Mutator::set_integer(std::string& bytes) {
  const auto width = std::size_t{1} << below(4);
  if (bytes.size() < width) return;
  const std::array<std::uint64_t, 6> values = {0, bytes.size(), std::uint64_t{1} << (8 * width - 1), 0x7fffffff, 1, 1000000007};
  const auto value = one_of(values) + below(3) - 1;
  const bool big_endian = below(3) == 0;
  const auto at = below(bytes.size() - width + 1);
  for (std::size_t i = 0; i < width; ++i) {
    bytes[at + (big_endian ? width - 1 - i : i)] = static_cast<char>((value >> (8 * i)) & 0xff);
  }
}

/// A run of digits becomes another number; in its place half of the time, as tables of fixed columns need it.
void Mutator::set_decimal(std::string& bytes) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size()));
  const auto begin = std::find_if(from, bytes.end(), is_digit);
  if (begin == bytes.end()) return;
  const auto end = std::find_if_not(begin, bytes.end(), is_digit);
  const std::string number(one_of(decimals));
  if (below(2) == 0) {
    bytes.replace(begin, end, number);
  } else {
    std::copy_n(number.begin(), std::min<std::ptrdiff_t>(std::ssize(number), bytes.end() - begin), begin);
  }
}

void Mutator::cut_end(std::string& bytes) { bytes.resize(below(bytes.size() + 1)); }

void Mutator::cut_slice(std::string& bytes) {
  const auto slice = slice_of(bytes);
  bytes.erase(slice.begin, slice.count);
}

void Mutator::repeat_slice(std::string& bytes) {
  if (bytes.size() >= longest || bytes.empty()) return;
  const auto slice = slice_of(bytes);
  const auto piece = bytes.substr(slice.begin, slice.count);
  std::string repeated;
  const auto most = std::max<std::size_t>(1, (longest - bytes.size()) / piece.size());
  for (auto times = 1 + below(below(8) == 0 ? most : 4); times > 0; --times) repeated += piece;
  bytes.insert(slice.begin, repeated);
}

void Mutator::take_slice(std::string& bytes) {
  const auto& other = one_of(corpus_);
  const auto slice = slice_of(other);
  const auto at = below(bytes.size() + 1);
  const auto over = below(2) == 0 ? slice.count : 0;  // laid over what is there, or pushed in between
  bytes.replace(at, over, other, slice.begin, slice.count);
}

void Mutator::exchange_slices(std::string& bytes) {
  const auto a = slice_of(bytes), b = slice_of(bytes);
  const auto count = std::min(a.count, b.count);
  for (std::size_t i = 0; i < count; ++i) std::swap(bytes[a.begin + i], bytes[b.begin + i]);
}

}  // namespace mpol::testing
