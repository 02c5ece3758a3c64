#include <mpol_cpp/io/tile_check.h>

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

}  // namespace

void TileCheck::Close::operator()(gzFile_s* file) const { gzclose(file); }

TileCheck::TileCheck(std::filesystem::path path) : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb")) {
  if (!file_) throw FileError(fmt::format("{}: it cannot be opened; check its permissions", path_.string()));
}

void TileCheck::check_header(std::int64_t begin) {
  if (gzseek(file_.get(), begin, SEEK_SET) != begin) return;
  std::array<char, card_bytes> bytes{};
  while (gzread(file_.get(), bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size())) {
    const std::string_view card(bytes.data(), bytes.size());
    const auto key = trimmed(card.substr(0, 8));
    if (key == "END") return;
    if (!key.starts_with("ZTILE") || card[8] != '=') continue;
    const auto value = trimmed(card.substr(9, card.find('/', 9) - 9));
    const auto tile = number_of<std::int64_t>(std::string(value));
    if (tile && *tile > 0) continue;
    throw FileError(
        fmt::format("{}: {} = {}; a tile of a compressed image has a whole number of pixels, 1 or more: the file is damaged, "
                    "write it again",
                    path_.string(), key, value));
  }
}

}  // namespace mpol::io
