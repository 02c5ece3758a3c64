#include "catch.h"

#include <stdexcept>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/train/options/loss_history.h>

using namespace mpol;

namespace {

EpochLoss row_of(std::size_t epoch) {
  const auto value = static_cast<double>(epoch);
  return {static_cast<std::int64_t>(epoch), 0.5 + value, {value, value * value, -value}};
}

LossHistory history_of(std::size_t epochs) {
  LossHistory history;
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) history.push_back(row_of(epoch));
  return history;
}

bool agrees(const EpochLoss& a, const EpochLoss& b) {
  return a.epoch == b.epoch && a.learning_rate == b.learning_rate && a.values == b.values;
}

constexpr auto block = LossHistory::block_rows;

}  // namespace

TEST_CASE("a history gives back every epoch that was appended", "[train][quick]") {
  const auto epochs = GENERATE(as<std::size_t>(), 0, 1, 3, block - 1, block, block + 1, 2 * block + 5);
  INFO(epochs << " epochs");
  const auto history = history_of(epochs);
  CHECK(history.size() == epochs);
  CHECK(history.empty() == (epochs == 0));
  std::size_t epoch = 0;
  bool all = true;
  for (const auto& loss : history) {
    all = all && agrees(loss, row_of(epoch)) && history.total(epoch) == row_of(epoch).total();
    ++epoch;
  }
  CHECK(all);
  CHECK(epoch == epochs);
  CHECK_THROWS_AS(history.at(epochs), std::out_of_range);
  if (epochs == 0) return;
  CHECK(agrees(history.back(), row_of(epochs - 1)));
  CHECK(agrees(history.front(), row_of(0)));
}

TEST_CASE("epochs that a history forgets can be appended anew, and copies keep theirs", "[train][quick]") {
  const auto kept = GENERATE(as<std::size_t>(), 0, 1, block - 1, block, block + 3);
  INFO(kept << " epochs kept");
  auto history = history_of(block + 4);
  const auto copy = history;
  history.resize(kept);
  CHECK(history.size() == kept);
  history.push_back({static_cast<std::int64_t>(kept), 7, {1, 2, 3}});
  CHECK(history.back().learning_rate == 7);
  if (kept > 0) CHECK(agrees(history[kept - 1], row_of(kept - 1)));
  CHECK(copy.size() == block + 4);
  CHECK(agrees(copy[kept], row_of(kept)));
  history.pop_back();
  CHECK(history.size() == kept);
  CHECK_THROWS_AS(history.resize(kept + 1), ValueError);
}

TEST_CASE("rows of a history have one length and come in order", "[train][quick]") {
  auto history = history_of(2);
  CHECK_THROWS_AS(history.push_back({2, 0.3, {1, 2}}), ValueError);
  CHECK_THROWS_AS(history.push_back({3, 0.3, {1, 2, 3}}), ValueError);
  CHECK(history.size() == 2);
}
