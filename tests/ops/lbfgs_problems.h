#pragma once

// Functions for L-BFGS to go down on, and the way that LibTorch's goes.
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/ops/scalar_tensor.h>
#include <torch/optim/lbfgs.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_memory.h>

#include "catch.h"
#include "compare.h"
#include "random.h"

namespace mpol::testing {

using Valued = std::function<Tensor(const Tensor&)>;  // differentiable, (n) to ()

/// A narrow bent valley in many dimensions: searches along it grow, shrink and fail.
inline Tensor valley(const Tensor& x) {
  const auto n = x.size(0), even = n / 2;
  const auto a = x.narrow(0, 0, even), b = x.narrow(0, even, even);
  return (100 * (b - a.square()).square() + (1 - a).square()).sum() + x.narrow(0, 2 * even, n - 2 * even).square().sum();
}
/// Flat far out, steep within.
inline Tensor well(const Tensor& x) { return (x.square() / (1 + x.square())).sum() + 1e-3 * (x - 0.3).square().sum(); }
inline Tensor ill_conditioned(const Tensor& x) {
  return (at::logspace(0, 5, x.size(0), 10.0, x.options()) * (x - 0.5).square()).sum();
}

struct Way {
  std::vector<double> values;  // at the beginning of each step
  Tensor position;
};

struct LibTorchRun : Way {
  int evaluations = 0;
};

/// LibTorch's own form of what L-BFGS goes on from.
inline std::unique_ptr<torch::optim::LBFGSParamState> libtorch_state(const ops::LbfgsMemory& memory) {
  std::deque<Tensor> changes, moves, inverse_curvatures;
  for (std::size_t k = 0; k < memory.moves.size(); ++k) {
    changes.push_back(memory.changes[k].clone());
    moves.push_back(memory.moves[k].clone());
    inverse_curvatures.push_back(at::scalar_tensor(1 / memory.curvatures[k], torch::kFloat64));
  }
  auto state = std::make_unique<torch::optim::LBFGSParamState>();
  state->func_evals(memory.evaluations);
  state->n_iter(memory.iterations);
  state->t(memory.step);
  state->prev_loss(memory.previous_value);
  state->d(memory.direction.clone());
  state->H_diag(at::scalar_tensor(memory.scale, torch::kFloat64));
  state->prev_flat_grad(memory.gradient.clone());
  state->old_dirs(std::move(changes));
  state->old_stps(std::move(moves));
  state->ro(std::move(inverse_curvatures));
  return state;
}

/// From the beginning, or from a memory on.
inline LibTorchRun by_libtorch(const Valued& function, const Tensor& start, double rate, int count,
                               const ops::LbfgsMemory* memory = nullptr) {
  auto position = start.clone().set_requires_grad(true);
  torch::optim::LBFGS optimizer(
      {position}, torch::optim::LBFGSOptions(rate).line_search_fn("strong_wolfe").tolerance_grad(0).tolerance_change(0));
  if (memory != nullptr) optimizer.state()[position.unsafeGetTensorImpl()] = libtorch_state(*memory);
  LibTorchRun reference;
  for (int i = 0; i < count; ++i) {
    const auto value = optimizer.step([&] {
      optimizer.zero_grad();
      auto present = function(position);
      present.backward();
      ++reference.evaluations;
      return present;
    });
    reference.values.push_back(value.item<double>());
  }
  reference.position = position.detach().clone();
  return reference;
}

/// A long way down, so that a way is still to go when the history of 100 pairs is full.
inline Tensor long_valley(const Tensor& x) {
  const auto n = x.size(0);
  return valley(x) + 1e-2 * (x.narrow(0, 1, n - 1) - x.narrow(0, 0, n - 1)).pow(4).sum();
}

inline Tensor lbfgs_start(std::int64_t elements, torch::Dtype dtype = torch::kFloat64) {
  return normal({elements}, torch::kFloat64, 21).to(dtype);
}

/// The direction that the two-loop recursion makes of a memory, in float64 whatever the memory's dtype.
/// Source: Nocedal & Wright 2006, Numerical Optimization, algorithm 7.4.
inline Tensor two_loop_direction(const ops::LbfgsMemory& memory) {
  auto direction = -memory.gradient.to(torch::kFloat64);
  std::vector<Tensor> factors(memory.moves.size());
  for (std::size_t k = factors.size(); k-- > 0;) {
    factors[k] = memory.moves[k].to(torch::kFloat64).dot(direction) / memory.curvatures[k];
    direction = direction - factors[k] * memory.changes[k].to(torch::kFloat64);
  }
  direction = direction * memory.scale;
  for (std::size_t k = 0; k < factors.size(); ++k) {
    const auto factor = memory.changes[k].to(torch::kFloat64).dot(direction) / memory.curvatures[k];
    direction = direction + (factors[k] - factor) * memory.moves[k].to(torch::kFloat64);
  }
  return direction;
}

/// Whether a run whose history is full goes on as LibTorch's does from the same memory: each step drops its twenty oldest pairs
/// for new ones. (Two whole ways would differ by the rounding of more than a hundred iterations, which grows along them.)
template <typename Run>
void check_full_history(Run& run, double rate) {
  run.steps(rate, 11);
  const auto memory = run.lbfgs().memory();
  CHECK(memory.iterations > 110);
  REQUIRE(memory.moves.size() == 100);
  const auto from = run.position().clone();
  const auto found = run.steps(rate, 3);
  const auto expected = by_libtorch(long_valley, from, rate, 3, &memory);
  for (std::size_t i = 0; i < 3; ++i) CHECK(found.values[i] == Approx(expected.values[i]).epsilon(1e-8));
  CHECK(relative_error(found.position, expected.position) < 1e-6);
}

/// Whether two steps of a run from lbfgs_start() are LibTorch's, evaluation by evaluation.
template <typename Run>
void check_way(Run& run, const Valued& function, double rate) {
  const Tensor start = run.position().clone();
  const Way found = run.steps(rate, 2);
  const auto expected = by_libtorch(function, start, rate, 2);
  if (start.numel() == 37) CHECK(run.evaluations() == expected.evaluations);  // smaller ones end at rounding errors
  CHECK(found.values.at(1) == Approx(expected.values.at(1)).epsilon(1e-6).margin(1e-12));
  CHECK(function(found.position).item<double>() ==
        Approx(function(expected.position).item<double>()).epsilon(1e-6).margin(1e-12));
}

/// Whether a run in the valley of 20 dimensions comes to its minimum.
template <typename T, typename Run>
void check_minimum(Run& run) {
  run.steps(1, 12);
  CHECK(valley(run.position().to(torch::kFloat64)).template item<double>() < tolerance<T>(1e-9, 1e-6));
  CHECK(relative_error(run.position(), torch::ones({20}, torch::kFloat64)) < tolerance<T>(1e-4, 1e-2));
}

/// Whether a run that has taken up the memory of another one goes on as that does, to the last bit.
template <typename Run>
void check_resumed(Run& whole, Run& resumed) {
  resumed.lbfgs().restore(whole.lbfgs().memory());
  const auto expected = whole.steps(0.02, 2), own = resumed.steps(0.02, 2);
  CHECK(own.values == expected.values);
  CHECK(torch::equal(own.position, expected.position));
}

/// Whether steps on functions without a slope, without numbers, with an edge and without a bottom end.
/// @tparam Run  made of a function and a start
template <typename Run>
void check_ends() {
  const auto nothing = [](const Tensor& x) { return (x * 0).sum(); };
  const auto not_a_number = [](const Tensor& x) { return (x * std::nan("")).sum(); };
  const auto edge = [](const Tensor& x) { return (x.square() + (x < 0.3).log() * 0).sum(); };
  const auto bottomless = [](const Tensor& x) { return -x.sum(); };
  Run flat(nothing, lbfgs_start(5)), broken(not_a_number, lbfgs_start(5)), falls_off(edge, lbfgs_start(5)),
      endless(bottomless, lbfgs_start(5));
  const auto before = flat.position().clone();
  flat.step(1);
  CHECK(flat.evaluations() == 1);
  CHECK(torch::equal(flat.position(), before));
  for (auto* each : {&broken, &falls_off, &endless}) CHECK_NOTHROW(each->step(1));
}

/// Whether memories of another length, or of more pairs than are kept, are refused. @param lbfgs  of 4 elements
template <typename Lbfgs>
void check_refused_memory(Lbfgs& lbfgs) {
  ops::LbfgsMemory memory;
  memory.iterations = 1;
  memory.direction = memory.gradient = torch::zeros({3}, torch::kFloat64);
  CHECK_THROWS_AS(lbfgs.restore(memory), ValueError);
  memory.moves.resize(101), memory.changes.resize(101);
  CHECK_THROWS_AS(lbfgs.restore(memory), ValueError);
}

}  // namespace mpol::testing
