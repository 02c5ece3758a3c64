// Averages in time and channel of rows that a test makes up.
#include "catch.h"

#include <cmath>
#include <algorithm>
#include <complex>
#include <functional>
#include <optional>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/io/readers/averaging_reader.h>
#include <mpol_cpp/io/readers/collect_visibilities.h>

#include "compare.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

/// A row of a window of four channels.
struct Row {
  double time = 0;
  std::int64_t a = 0, b = 1, field = 0, scan = 1, observation = 0, window = 0;
  double u = 100, v = -50;
  std::vector<double> data = {1, 2, 3, 4}, weights = {1, 1, 1, 1};
};

class RowReader final : public io::VisibilityReader {
 public:
  RowReader(std::vector<Row> rows, const std::vector<std::int64_t>& channels = {0, 1, 2, 3}, std::size_t block = 7,
            bool times = true)
      : rows_(std::move(rows)), block_(block), times_(times) {
    std::vector<double> frequencies;
    frequencies.reserve(channels.size());
    for (const auto channel : channels) frequencies.push_back(100e9 + 1e8 * static_cast<double>(channel));
    for (std::int64_t id = 0; id < 2; ++id) {
      io::ReaderWindow window;
      window.id = id;
      for (const auto& row : rows_) window.rows += row.window == id;
      window.channels = channels;
      window.frequencies = torch::tensor(frequencies, torch::kFloat64);
      for (const double frequency : frequencies) window.wavelengths_per_unit.push_back(units::metres_to_lambda(1, frequency));
      window.channel_width = 1e8;
      shape_.windows.push_back(window);
    }
  }

  const io::ReaderShape& shape() const override { return shape_; }
  const io::DroppedSamples& dropped() const override { return dropped_; }

  std::optional<io::RowBlock> next() override {
    if (begin_ == rows_.size()) return std::nullopt;
    auto end = begin_;
    while (end < rows_.size() && end - begin_ < block_ && rows_[end].window == rows_[begin_].window) ++end;
    const auto count = static_cast<std::int64_t>(end - begin_), nchan = shape_.windows[0].nchan();
    io::RowBlock block;
    block.window = rows_[begin_].window;
    block.u = torch::empty({count}, torch::kFloat64), block.v = torch::empty({count}, torch::kFloat64);
    block.data = torch::zeros({count, nchan}, torch::kComplexFloat);
    block.weights = torch::zeros({count, nchan}, torch::kFloat32);
    block.observations = torch::zeros({count}, torch::kInt32);
    if (times_) block.times = torch::empty({count}, torch::kFloat64), block.tracks = torch::empty({count, 5}, torch::kInt64);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& row = rows_[begin_ + static_cast<std::size_t>(i)];
      block.u[i] = row.u, block.v[i] = row.v;
      block.observations[i] = row.observation;
      for (std::int64_t c = 0; c < nchan; ++c) {
        block.data[i][c] = c10::complex<float>(static_cast<float>(row.data[static_cast<std::size_t>(c)]), 1);
        block.weights[i][c] = row.weights[static_cast<std::size_t>(c)];
      }
      if (!times_) continue;
      block.times[i] = row.time;
      block.tracks[i] = torch::tensor({row.a, row.b, row.field, row.scan, row.observation});
    }
    begin_ = end;
    return block;
  }

 private:
  std::vector<Row> rows_;
  std::size_t block_, begin_ = 0;
  bool times_;
  io::ReaderShape shape_;
  io::DroppedSamples dropped_;
};

io::AveragingReader averaged(const std::vector<Row>& rows, double seconds, std::int64_t channels,
                             const std::vector<std::int64_t>& selected = {0, 1, 2, 3}, std::size_t block = 7) {
  return {std::make_unique<RowReader>(rows, selected, block), io::AveragingOptions().seconds(seconds).channels(channels)};
}

/// Rows that are left of the rows, each as the sum of its weights.
std::vector<double> weights_after(const std::vector<Row>& rows, double seconds) {
  auto reader = averaged(rows, seconds, 4);
  std::vector<double> weights;
  while (const auto block = reader.next()) {
    for (std::int64_t row = 0; row < block->weights.size(0); ++row) weights.push_back(block->weights[row].sum().item<double>());
  }
  std::sort(weights.begin(), weights.end());
  return weights;
}

std::vector<Row> every_two_seconds(int count) {
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) rows.push_back(Row{.time = 5e9 + 2.0 * i});
  return rows;
}

}  // namespace

TEST_CASE("an average is the weighted mean, and the weights add up", "[io][quick]") {
  const std::vector<Row> rows = {{.time = 0, .u = 100, .v = 10, .data = {1, 2, 3, 4}, .weights = {1, 2, 3, 4}},
                                 {.time = 2, .u = 110, .v = 14, .data = {5, 6, 7, 8}, .weights = {4, 0, 1, 5}}};
  auto reader = averaged(rows, 10, 2);
  const auto& window = reader.shape().windows[0];
  CHECK(window.channels == std::vector<std::int64_t>{0, 2});
  CHECK(window.channel_width == 2e8);
  CHECK(window.frequencies[0].item<double>() == 100.05e9);
  CHECK(window.wavelengths_per_unit[1] == Approx(units::metres_to_lambda(1, 100.25e9)).epsilon(1e-14));
  const auto block = reader.next();
  REQUIRE(block);
  CHECK(block->data.size(0) == 1);
  CHECK(at::real(block->data[0][0]).item<double>() == Approx((1 * 1 + 2 * 2 + 4 * 5) / 7.0));  // a flagged sample takes no part
  CHECK(at::real(block->data[0][1]).item<double>() == Approx((3 * 3 + 4 * 4 + 1 * 7 + 5 * 8) / 13.0));
  CHECK(at::imag(block->data).sub(1).abs().max().item<double>() < 1e-6);
  CHECK(block->weights[0][0].item<double>() == 7);
  CHECK(block->weights[0][1].item<double>() == 13);
  CHECK(block->u[0].item<double>() == Approx((10 * 100 + 10 * 110) / 20.0));
  CHECK(block->v[0].item<double>() == Approx((10 * 10 + 10 * 14) / 20.0));
  CHECK_FALSE(reader.next());
}

TEST_CASE("one sample comes from no longer than is asked for, from one pair, scan, field, observation and window",
          "[io][quick]") {
  CHECK(weights_after(every_two_seconds(10), 6) == std::vector<double>{4, 12, 12, 12});
  CHECK(weights_after(every_two_seconds(10), 2) == std::vector<double>(10, 4));
  CHECK(weights_after(every_two_seconds(10), 1e6) == std::vector<double>{40});
  const auto split_by = [](const std::function<void(Row&)>& change) {
    auto rows = every_two_seconds(10);
    for (std::size_t i = 6; i < rows.size(); ++i) change(rows[i]);
    return weights_after(rows, 1e6);
  };
  const std::vector<double> apart = {16, 24};
  CHECK(split_by([](Row& row) { row.a = 2; }) == apart);
  CHECK(split_by([](Row& row) { row.b = 3; }) == apart);
  CHECK(split_by([](Row& row) { row.field = 1; }) == apart);
  CHECK(split_by([](Row& row) { row.scan = 2; }) == apart);
  CHECK(split_by([](Row& row) { row.observation = 1; }) == apart);
  CHECK(split_by([](Row& row) { row.window = 1; }) == apart);
  CHECK(split_by([](Row& row) { row.time += 60; }) == apart);   // a gap
  CHECK(split_by([](Row& row) { row.time -= 100; }) == apart);  // a step back
  CHECK(split_by([](Row& row) { row.time += 1; }) == std::vector<double>{40});
  CHECK(split_by([](Row& row) { row.weights = {0, 0, 0, 0}; }) == std::vector<double>{24});
}

TEST_CASE("pairs that take turns are averaged each for itself, however the blocks fall", "[io][quick]") {
  std::vector<Row> rows;
  for (int i = 0; i < 30; ++i) {
    const int turn = i / 3;
    Row row{.time = 2.0 * turn, .b = 1 + i % 3};
    row.data = {static_cast<double>(i % 3), 0, 0, 0};
    rows.push_back(row);
  }
  for (const std::size_t size : {1, 4, 30}) {
    auto reader = averaged(rows, 10, 1, {0, 1, 2, 3}, size);
    std::int64_t count = 0;
    while (const auto block = reader.next()) {
      count += block->data.size(0);
      const auto first = at::real(block->data.select(1, 0));
      CHECK(same(first, first.round()));  // of one pair alone
      CHECK(block->weights.eq(5).all().item<bool>());
    }
    CHECK(count == 6);
  }
}

TEST_CASE("channels that are no neighbours stay apart", "[io][quick]") {
  auto reader = averaged({Row()}, 0, 3, {0, 1, 5, 6});
  CHECK(reader.shape().windows[0].channels == std::vector<std::int64_t>{0, 5});
  const auto block = reader.next();
  REQUIRE(block);
  CHECK(block->weights.eq(2).all().item<bool>());
  CHECK(at::real(block->data[0][1]).item<double>() == 3.5);
}

TEST_CASE("without averages, samples are those of the reader", "[io][quick]") {
  auto plain = RowReader(every_two_seconds(20));
  auto reader = averaged(every_two_seconds(20), 0, 1);
  const auto a = io::collect_samples(plain), b = io::collect_samples(reader);
  CHECK(same(a.visibilities.data(), b.visibilities.data()));
  CHECK(same(a.visibilities.weights(), b.visibilities.weights()));
  CHECK(same(a.visibilities.baselines().u(), b.visibilities.baselines().u()));
}

TEST_CASE("the loss of amplitude is that of the averages themselves", "[io][quick]") {
  // A source at theta on a baseline that turns as fast as it can: the mean of its phases over channels and time.
  const double q = 1e6, theta = 8, width = 2e-4, seconds = 20;
  const io::AveragingCost cost{.seconds = seconds, .longest = q, .channels = 16, .relative_width = width};
  const double phase = 2 * units::pi * q * theta * units::arcsec;
  std::complex<double> in_channels = 0, in_time = 0;
  for (int i = 0; i < 16; ++i) in_channels += std::polar(1.0 / 16, phase * width * i);
  constexpr int steps = 20000;
  for (int i = 0; i < steps; ++i) in_time += std::polar(1.0 / steps, phase * 7.2921159e-5 * seconds * (i + 0.5) / steps);
  CHECK(cost.loss(theta) == Approx(1 - std::abs(in_channels) * std::abs(in_time)).epsilon(1e-6));
  CHECK(cost.loss(0) == 0);
  CHECK(cost.loss(cost.offset_of(0.01)) == Approx(0.01).epsilon(1e-6));
  CHECK(std::isinf(io::AveragingCost{}.offset_of(0.01)));
}

TEST_CASE("averages that cannot be made are refused", "[io][quick]") {
  CHECK_THROWS_AS(averaged({Row()}, -1, 1), ValueError);
  CHECK_THROWS_AS(averaged({Row()}, std::nan(""), 1), ValueError);
  CHECK_THROWS_AS(averaged({Row()}, 1, 0), ValueError);
  io::AveragingReader without_times(
      std::make_unique<RowReader>(every_two_seconds(3), std::vector<std::int64_t>{0, 1, 2, 3}, 7, false),
      io::AveragingOptions().seconds(10));
  CHECK_THROWS_AS(without_times.next(), DataError);
}
