#include "catch.h"

#include <algorithm>
#include <vector>

#include <mpol_cpp/gridding/cells/stream_median.h>

#include "random.h"

using namespace mpol::gridding;

namespace {

double exact(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  return n == 0 ? 0 : 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

struct Found {
  double median;
  int passes;
};

Found found(const std::vector<double>& values, std::size_t capacity) {
  StreamMedian median(capacity);
  int passes = 0;
  do {
    for (const double value : values) median.add(value);
    ++passes;
  } while (!median.finish_pass() && passes < 10);
  CHECK(median.count() == values.size());
  return {median.value(), passes};
}

std::vector<double> deviates(std::int64_t count, std::uint64_t seed) {
  const auto values = mpol::testing::normal({count}, torch::kDouble, seed).abs();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + count};
}

}  // namespace

TEST_CASE("a median in bounded memory is exact", "[gridding][quick]") {
  for (const std::int64_t count : {1, 2, 3, 10, 999, 1000, 20'001}) {
    const auto values = deviates(count, static_cast<std::uint64_t>(count));
    CHECK(found(values, 1 << 20).median == exact(values));
    CHECK(found(values, 1 << 20).passes == 1);
    CHECK(found(values, 100).median == exact(values));
    CHECK(found(values, 1).median == exact(values));
    CHECK(found(values, 1).passes <= 5);
  }
  CHECK(found({}, 10).median == 0);
}

TEST_CASE("a median between two clusters and among equal numbers is exact", "[gridding][quick]") {
  std::vector<double> clusters(5000, 1.0);
  clusters.insert(clusters.end(), 5000, 1e9);
  CHECK(found(clusters, 64).median == exact(clusters));
  for (const std::size_t above : {4990, 4999, 5000, 5001, 5010}) {  // all at hand
    std::vector<double> held(5000, 1.0);
    held.insert(held.begin(), above, 1e9);
    CHECK(found(held, 1 << 20).median == exact(held));
  }
  CHECK(found(std::vector<double>(3001, 0.7), 64).median == 0.7);
  CHECK(found(std::vector<double>(3001, 0.7), 1 << 20).median == 0.7);
  CHECK(found(std::vector<double>(3000, 0.0), 64).median == 0.0);
}

TEST_CASE("numbers added in blocks count as those added one by one, but for negative ones", "[gridding][quick]") {
  for (const std::int64_t count : {5, 3000, 20'001, 50'000}) {
    const auto values = deviates(count, static_cast<std::uint64_t>(count) + 1);
    std::vector<double> mixed;
    for (const double value : values) {
      mixed.push_back(value);
      if (mixed.size() % 3 == 1) mixed.push_back(-1.0);
    }
    for (const std::size_t capacity : {std::size_t{100}, std::size_t{25'000}, std::size_t{1} << 20}) {
      StreamMedian median(capacity);
      do {
        const auto half = mixed.size() / 2;
        median.add(mixed.data(), static_cast<std::int64_t>(half));
        median.add(mixed.data() + half, static_cast<std::int64_t>(mixed.size() - half));
      } while (!median.finish_pass());
      CHECK(median.count() == values.size());
      CHECK(median.value() == exact(values));
    }
  }
}
