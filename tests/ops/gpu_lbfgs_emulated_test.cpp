// L-BFGS for a GPU with its kernels emulated on the CPU.
#include "catch.h"

#include <cmath>
#include <functional>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/lbfgs/gpu_lbfgs.h>

#include "compare.h"
#include "lbfgs_problems.h"
#include "random.h"

using namespace mpol;
using namespace mpol::testing;
using ops::EmulatedOrder;
using ops::GpuLbfgs;
using ops::GpuLbfgsSettings;
using ops::GradientAt;
using ops::WolfeSearch;

namespace {

/// GpuLbfgs on a function of one vector.
class LbfgsRun {
 public:
  LbfgsRun(Valued function, const Tensor& start, GpuLbfgsSettings settings = {})
      : function_(std::move(function)),
        position_(start.clone()),
        gradient_(at::zeros_like(start)),
        lbfgs_(fitted(settings, start)) {}

  double step(double rate) {
    lbfgs_.begin(rate);
    evaluate();
    const double value = values_.item<double>();
    for (int i = 1; !lbfgs_.at_rest(); ++i) {
      REQUIRE(i < 1000);
      evaluate();
    }
    return value;
  }
  Way steps(double rate, int count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (auto& value : values) value = step(rate);
    return {values, position_.clone()};
  }
  void evaluate() {
    lbfgs_.enqueue(position_, gradient_, values_, [&] {
      gradient_.copy_(gradient_of(function_, position_));
      values_.fill_(function_(position_).to(torch::kFloat64));
      ++evaluations_;
    });
  }
  GpuLbfgs& lbfgs() { return lbfgs_; }
  const Tensor& position() const { return position_; }
  int evaluations() const { return evaluations_; }

 private:
  static GpuLbfgsSettings fitted(GpuLbfgsSettings settings, const Tensor& start) {
    settings.elements = start.numel(), settings.dtype = start.scalar_type();
    return settings;
  }
  Valued function_;
  Tensor position_, gradient_, values_ = torch::zeros({1}, torch::kFloat64);
  GpuLbfgs lbfgs_;
  int evaluations_ = 0;
};

}  // namespace

TEST_CASE("emulated L-BFGS goes the way of LibTorch's, evaluation by evaluation", "[ops][lbfgs][cuda][quick]") {
  const auto function = GENERATE(Valued(valley), Valued(well), Valued(ill_conditioned));
  const std::int64_t elements = GENERATE(1, 2, 37);
  const double rate = GENERATE(1.0, 0.1, 8.0);
  const std::int64_t piece = GENERATE(1024, 5);
  CAPTURE(elements, rate, piece);
  GpuLbfgsSettings settings;
  settings.piece = piece;
  LbfgsRun own(function, lbfgs_start(elements), settings);
  check_way(own, function, rate);
}

TEST_CASE("emulated L-BFGS forgets its oldest pairs as LibTorch's does", "[ops][lbfgs][cuda]") {
  LbfgsRun own(long_valley, lbfgs_start(40) * 3);
  check_full_history(own, 0.02);
}

TEMPLATE_TEST_CASE("directions of emulated L-BFGS are those of the two-loop recursion", "[ops][lbfgs][cuda][quick]", float,
                   double) {
  const int steps = GENERATE(1, 3, 13);  // the last with a ring of pairs that has turned around more than once
  CAPTURE(steps);
  LbfgsRun own(long_valley, lbfgs_start(40, dtype_of<TestType>()) * 3);
  own.steps(0.02, steps);
  const auto memory = own.lbfgs().memory();
  if (steps == 13 && memory.direction.scalar_type() == torch::kFloat64) REQUIRE(memory.moves.size() == 100);
  REQUIRE(memory.moves.size() > 5);
  CHECK(relative_error(memory.direction, two_loop_direction(memory)) < tolerance<TestType>(1e-10, 1e-6));
  // The same memory taken up by another: its first direction is made of all pairs and the next one.
  LbfgsRun resumed(long_valley, own.position());
  resumed.lbfgs().restore(memory);
  resumed.step(0.02);
  const auto after = resumed.lbfgs().memory();
  CHECK(relative_error(after.direction, two_loop_direction(after)) < tolerance<TestType>(1e-10, 1e-6));
}

TEMPLATE_TEST_CASE("emulated L-BFGS finds a minimum", "[ops][lbfgs][cuda][quick]", float, double) {
  LbfgsRun own(valley, lbfgs_start(20, dtype_of<TestType>()));
  check_minimum<TestType>(own);
}

TEMPLATE_TEST_CASE("no order of blocks and threads changes what emulated L-BFGS finds", "[ops][lbfgs][cuda][quick]", float,
                   double) {
  GpuLbfgsSettings settings;
  settings.piece = 3;
  LbfgsRun ascending(valley, lbfgs_start(31, dtype_of<TestType>()), settings);
  settings.order = EmulatedOrder::descending;
  LbfgsRun descending(valley, lbfgs_start(31, dtype_of<TestType>()), settings);
  const auto one = ascending.steps(1, 3), other = descending.steps(1, 3);
  CHECK(one.values == other.values);
  CHECK(torch::equal(one.position, other.position));
}

TEMPLATE_TEST_CASE("emulated L-BFGS goes on from its memory bit for bit", "[ops][lbfgs][cuda][quick]", float, double) {
  const int before = GENERATE(0, 1, 2, 13);  // the last with a history that has turned around
  GpuLbfgsSettings settings;
  settings.piece = 7;
  LbfgsRun whole(valley, lbfgs_start(40, dtype_of<TestType>()), settings);
  whole.steps(0.02, before);
  LbfgsRun resumed(valley, whole.position(), settings);
  check_resumed(whole, resumed);
}

TEST_CASE("evaluations beyond the end of a step change nothing", "[ops][lbfgs][cuda][quick]") {
  LbfgsRun own(valley, lbfgs_start(10));
  own.step(1);
  const auto before = own.position().clone();
  const auto memory = own.lbfgs().memory();
  for (int i = 0; i < 3; ++i) own.evaluate();
  CHECK(own.lbfgs().at_rest());
  CHECK(torch::equal(own.position(), before));
  CHECK(own.lbfgs().memory().evaluations == memory.evaluations);
  CHECK(torch::equal(own.lbfgs().memory().direction, memory.direction));
}

TEST_CASE("a step of emulated L-BFGS ends whatever the function gives", "[ops][lbfgs][cuda][quick]") { check_ends<LbfgsRun>(); }

TEST_CASE("an accepted step satisfies the strong Wolfe conditions", "[ops][lbfgs][cuda][quick]") {
  const double first = GENERATE(1e-3, 0.1, 1.0, 30.0), bend = GENERATE(0.1, 1.0, 20.0);
  CAPTURE(first, bend);
  const auto value = [&](double t) { return std::cos(bend * t) * 0.1 * bend + 0.2 * t * t - t; };
  const auto slope = [&](double t) { return -0.1 * bend * bend * std::sin(bend * t) + 0.4 * t - 1; };
  WolfeSearch search{};
  search.begin(value(0), slope(0), first, 1);
  int evaluations = 1;
  while (!search.judge(value(search.trial), slope(search.trial))) {
    CHECK(search.keep != GradientAt::start);
    REQUIRE(++evaluations <= WolfeSearch::most_trials + 1);
  }
  const double t = search.accepted.step;
  CHECK(search.accepted.value == value(t));
  CHECK(value(t) <= value(0) + WolfeSearch::c1 * t * slope(0));
  CHECK(std::abs(slope(t)) <= WolfeSearch::c2 * std::abs(slope(0)));
}

TEST_CASE("emulated L-BFGS refuses what does not fit it", "[ops][lbfgs][cuda][quick]") {
  CHECK_THROWS_AS(GpuLbfgs({0, torch::kFloat64}), ValueError);
  CHECK_THROWS_AS(GpuLbfgs({4, torch::kFloat16}), ValueError);
  GpuLbfgs lbfgs({4, torch::kFloat64});
  const auto x = torch::zeros({4}, torch::kFloat64), values = torch::zeros({1}, torch::kFloat64);
  const auto nothing = [] {};
  CHECK_THROWS_AS(lbfgs.enqueue(torch::zeros({5}, torch::kFloat64), x, values, nothing), ValueError);
  CHECK_THROWS_AS(lbfgs.enqueue(x, torch::zeros({4}), values, nothing), ValueError);
  CHECK_THROWS_AS(lbfgs.enqueue(x, x.clone(), torch::zeros({1}), nothing), ValueError);
  check_refused_memory(lbfgs);
}
