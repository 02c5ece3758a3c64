#include <mpol_cpp/gridding/cells/occupancy.h>

#include <algorithm>
#include <bit>

namespace mpol::gridding {
namespace {

constexpr std::int64_t fewest_words = 64;  // of a strip: each costs a pass over the data

}  // namespace

Occupancy::Occupancy(std::int64_t keys, std::span<const std::uint32_t> occupied, std::uint32_t first_key)
    : size_((keys + RankWord::keys - 1) / RankWord::keys), words_(static_cast<std::size_t>(size_) + 1) {
  for (const auto key : occupied) {
    const auto own = key - first_key;
    words_.data()[own / RankWord::keys].bits |= std::uint64_t{1} << own % RankWord::keys;
  }
  rank();
}

void Occupancy::rank() {
  std::uint32_t before = 0;
  for (auto* word = words_.data(); word <= words_.data() + size_; ++word) {
    word->before = before;
    before += static_cast<std::uint32_t>(std::popcount(word->bits));
  }
}

std::int64_t Occupancy::end_of_strip(std::int64_t first, std::int64_t most_cells) const {
  const auto* begin = words() + std::min(first + fewest_words, size_);
  const auto* beyond = std::upper_bound(begin, words() + size_ + 1, words()[first].before + most_cells,
                                        [](std::int64_t most, const RankWord& word) { return most < word.before; });
  return std::max(beyond - 1, begin) - words();
}

}  // namespace mpol::gridding
