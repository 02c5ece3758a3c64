#include "catch.h"

#include <cmath>
#include <functional>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/lbfgs/cpu_lbfgs.h>

#include "compare.h"
#include "instruction_sets.h"
#include "lbfgs_problems.h"
#include "random.h"
#include "threads.h"

using namespace mpol;
using namespace mpol::testing;
using ops::CpuLbfgs;

namespace {

/// CpuLbfgs on a function of one vector.
template <typename T>
class HostRun {
 public:
  HostRun(Valued function, const Tensor& start, Isa isa = selected_isa())
      : function_(std::move(function)), position_(start.clone()), gradient_(at::zeros_like(start)), lbfgs_(start.numel(), isa) {}

  double step(double rate) {
    double first = std::nan("");
    int evaluations = 0;
    lbfgs_.step(position_.mutable_data_ptr<T>(), gradient_.const_data_ptr<T>(), rate, [&] {
      gradient_.copy_(gradient_of(function_, position_));
      const double value = function_(position_).to(torch::kFloat64).template item<double>();
      if (evaluations++ == 0) first = value;
      return value;
    });
    evaluations_ += evaluations;
    return first;
  }
  Way steps(double rate, int count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (auto& value : values) value = step(rate);
    return {values, position_.clone()};
  }
  CpuLbfgs<T>& lbfgs() { return lbfgs_; }
  const Tensor& position() const { return position_; }
  int evaluations() const { return evaluations_; }

 private:
  Valued function_;
  Tensor position_, gradient_;
  CpuLbfgs<T> lbfgs_;
  int evaluations_ = 0;
};

}  // namespace

TEST_CASE("L-BFGS on the CPU goes the way of LibTorch's, evaluation by evaluation", "[ops][lbfgs][quick]") {
  const auto function = GENERATE(Valued(valley), Valued(well), Valued(ill_conditioned));
  const std::int64_t elements = GENERATE(1, 2, 37, 5000);
  const double rate = GENERATE(1.0, 0.1, 8.0);
  const auto isas = instruction_sets();
  for (const auto isa : isas) {
    CAPTURE(elements, rate, to_string(isa));
    HostRun<double> own(function, lbfgs_start(elements), isa);
    check_way(own, function, rate);
  }
}

TEST_CASE("L-BFGS on the CPU forgets its oldest pairs as LibTorch's does", "[ops][lbfgs][quick]") {
  HostRun<double> own(long_valley, lbfgs_start(40) * 3);
  check_full_history(own, 0.02);
}

TEMPLATE_TEST_CASE("L-BFGS on the CPU finds a minimum", "[ops][lbfgs][quick]", float, double) {
  HostRun<TestType> own(valley, lbfgs_start(20, dtype_of<TestType>()));
  check_minimum<TestType>(own);
}

TEMPLATE_TEST_CASE("L-BFGS on the CPU is bitwise the same for any number of threads", "[ops][lbfgs][quick]", float, double) {
  const auto run = [](int threads) {
    const Threads used(threads);
    HostRun<TestType> own(long_valley, lbfgs_start(9001, dtype_of<TestType>()));
    return own.steps(0.1, 3);
  };
  const auto expected = run(1);
  for (const int threads : {2, 3}) {
    const auto own = run(threads);
    CHECK(own.values == expected.values);
    CHECK(torch::equal(own.position, expected.position));
  }
}

TEMPLATE_TEST_CASE("L-BFGS on the CPU goes on from its memory bit for bit", "[ops][lbfgs][quick]", float, double) {
  const int before = GENERATE(0, 1, 2, 13);  // the last with a history that has turned around
  HostRun<TestType> whole(long_valley, lbfgs_start(5000, dtype_of<TestType>()));
  whole.steps(0.02, before);
  HostRun<TestType> resumed(long_valley, whole.position());
  check_resumed(whole, resumed);
}

TEST_CASE("what a memory of L-BFGS holds never changes", "[ops][lbfgs][quick]") {
  HostRun<double> own(long_valley, lbfgs_start(40) * 3);
  own.steps(0.02, 8);
  const auto memory = own.lbfgs().memory();
  std::vector<Tensor> copies;
  for (const auto& move : memory.moves) copies.push_back(move.clone());
  const auto view = memory.changes.front().view({2, 20});
  const auto of_view = view.clone();
  const auto bytes = own.lbfgs().memory_bytes();
  own.steps(0.02, 8);  // pairs of which replace them
  for (std::size_t i = 0; i < copies.size(); ++i) CHECK(torch::equal(memory.moves[i], copies[i]));
  CHECK(torch::equal(view, of_view));
  const auto bytes_of_pair = std::int64_t{2} * 40 * 8;
  CHECK(own.lbfgs().memory_bytes() <= bytes + 101 * bytes_of_pair);
}

TEST_CASE("a step of L-BFGS on the CPU ends whatever the function gives", "[ops][lbfgs][quick]") {
  check_ends<HostRun<double>>();
}

TEST_CASE("L-BFGS on the CPU refuses what does not fit it", "[ops][lbfgs][quick]") {
  CHECK_THROWS_AS(CpuLbfgs<double>(0), ValueError);
  CpuLbfgs<double> lbfgs(4);
  check_refused_memory(lbfgs);
}
