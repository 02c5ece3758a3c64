#include <mpol_cpp/io/cfitsio/header_check.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <zlib.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/number_text.h>

namespace mpol::io {
namespace {

constexpr std::size_t card_bytes = 80;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Whether cfitsio takes the value of a keyword for a whole number.
bool is_counted(std::string_view key) {
  constexpr std::array beginnings = {"BITPIX", "NAXIS",   "PCOUNT",   "GCOUNT", "TFIELDS", "TBCOL",  "TNULL",
                                     "THEAP",  "EXTVER",  "EXTLEVEL", "BLANK",  "ZBITPIX", "ZNAXIS", "ZTILE",
                                     "ZVAL",   "ZPCOUNT", "ZGCOUNT",  "ZTHEAP", "ZBLANK",  "ZDITHER"};
  return std::any_of(beginnings.begin(), beginnings.end(), [&](const char* beginning) { return key.starts_with(beginning); });
}

std::string_view value_of(std::string_view card) { return trimmed(card.substr(9, card.find('/', 9) - 9)); }

}  // namespace

void HeaderCheck::Close::operator()(gzFile_s* file) const { gzclose(file); }

HeaderCheck::HeaderCheck(std::filesystem::path path) : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb")) {
  if (!file_) throw FileError(fmt::format("{}: it cannot be opened; check its permissions", path_.string()));
}

void HeaderCheck::check(std::int64_t begin) {
  if (gzseek(file_.get(), begin, SEEK_SET) != begin) return;
  std::array<char, card_bytes> bytes{};
  bool by_rice = false;
  std::string block = "32", width = "4";  // where the header has none
  while (gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size())) {
    const std::string_view card(bytes.data(), bytes.size());
    const auto key = trimmed(card.substr(0, 8));
    if (key == "END") break;
    check_card(card);
    if (key == "ZCMPTYPE") by_rice = card.find("RICE", 9) != std::string_view::npos;
    if (key == "ZVAL1") block = value_of(card);
    if (key == "ZVAL2") width = value_of(card);
  }
  if (by_rice) check_rice(block, width);
}

void HeaderCheck::check_card(std::string_view card) const {
  const auto key = trimmed(card.substr(0, 8));
  if (card[8] != '=' || !is_counted(key)) return;
  const auto value = value_of(card);
  const auto number = number_of<double>(std::string(value));
  if (key.starts_with("ZTILE") && !(number && *number >= 1)) {
    throw FileError(
        fmt::format("{}: {} = {}; a tile of a compressed image has a whole number of pixels, 1 or more: the file is damaged, "
                    "write it again",
                    path_.string(), key, value));
  }
  // What is short cfitsio refuses itself; texts and complex numbers it reads up to their closing mark, past any "/".
  constexpr std::size_t longest_number = 20;
  if (number || value.empty()) return;
  if (value.size() <= longest_number && value.front() != '\'' && value.front() != '(') return;
  throw FileError(
      fmt::format("{}: {} = {}; it must be a number: the file is damaged, write it again", path_.string(), key, value));
}

void HeaderCheck::check_rice(const std::string& block, const std::string& width) const {
  const auto refuse = [&](const char* key, const std::string& value, const char* what) {
    throw FileError(fmt::format("{}: {} = {}; {}: the file is damaged, write it again", path_.string(), key, value, what));
  };
  if (block != "16" && block != "32") refuse("ZVAL1", block, "pixels are packed by Rice in blocks of 16 or 32");
  if (width != "1" && width != "2" && width != "4" && width != "8")
    refuse("ZVAL2", width, "pixels packed by Rice have 1, 2, 4 or 8 bytes");
}

}  // namespace mpol::io
