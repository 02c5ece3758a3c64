#include <mpol_cpp/datasets/deal.h>

#include <numeric>
#include <random>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

/// A random order: std::shuffle differs from library to library (Fisher & Yates).
void permute(std::vector<std::int64_t>& values, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  for (std::uint64_t left = values.size(); left > 1; --left) {
    const std::uint64_t biased = (std::mt19937_64::max() - left + 1) % left;  // as many values would count once too often
    std::uint64_t drawn = engine();
    while (drawn > std::mt19937_64::max() - biased) drawn = engine();
    std::swap(values[left - 1], values[drawn % left]);
  }
}

/// Fold of the i-th of `count` values cut in runs whose lengths differ by one at most, the longer ones first.
std::int64_t fold_of(std::int64_t i, std::int64_t count, std::int64_t folds) {
  const auto shorter = count / folds, longer_runs = count % folds, in_longer = longer_runs * (shorter + 1);
  return i < in_longer ? i / (shorter + 1) : longer_runs + (i - in_longer) / shorter;
}

}  // namespace

std::vector<std::int64_t> deal(std::int64_t count, std::int64_t folds, std::uint64_t seed, const char* what) {
  if (count < folds) {
    throw DataError(
        fmt::format("{} {} can be held out; {} folds need as many at least: ask for fewer folds", count, what, folds));
  }
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  permute(order, seed);
  std::vector<std::int64_t> dealt(order.size());
  for (std::int64_t i = 0; i < count; ++i)
    dealt[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = fold_of(i, count, folds);
  return dealt;
}

}  // namespace mpol
