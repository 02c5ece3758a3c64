#pragma once

// What the kernels of L-BFGS on a GPU are given. C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/lbfgs/wolfe_search.h>

namespace mpol::ops {

/// Settings of torch::optim::LBFGS as the library uses it.
struct LbfgsLimits {
  static constexpr int history = 100;                      // pairs that directions are made of
  static constexpr std::int64_t slots = history + 1;       // one more is being tried
  static constexpr int iterations = 20, evaluations = 25;  // of one step
  static constexpr double least_curvature = 1e-10;         // of a pair that is kept
};

/// What an evaluation of value and gradient is for.
enum class LbfgsPhase : std::int64_t { rest, begin, search };

struct LbfgsState {
  WolfeSearch search;
  std::int64_t iterations, evaluations;            // of all steps
  std::int64_t step_iterations, step_evaluations;  // of this one
  std::int64_t pairs;                              // kept so far; number p lies in slot p % slots
  double scale;                                    // of the inverse Hessian that the pairs correct: s y / (y y) of the last
  double step;                                     // the last one along the direction
  double value, previous_value;                    // here, and where the direction began
  double gradient_sum;                             // of magnitudes, here
  GradientAt keep, accepted;                       // what the present evaluation means for the vectors
  bool begins, advance;                            // a step; an iteration, with a new direction
};

/// Pairs from the oldest on.
struct LbfgsPairs {
  std::int64_t oldest, count;

  MPOL_DEVICE static LbfgsPairs of(std::int64_t pairs) {
    const std::int64_t count = pairs < LbfgsLimits::history ? pairs : LbfgsLimits::history;
    return {pairs - count, count};
  }
  MPOL_DEVICE static int slot_of(std::int64_t number) { return static_cast<int>(number % LbfgsLimits::slots); }
  MPOL_DEVICE static int slot_after(int slot) { return slot + 1 == LbfgsLimits::slots ? 0 : slot + 1; }
  MPOL_DEVICE std::int64_t slot(std::int64_t k) const { return slot_of(oldest + k); }
  MPOL_DEVICE bool has(std::int64_t number) const { return number >= oldest && number < oldest + count; }
};

/// Vectors have `elements` elements: all parameters together. Products are float64.
template <typename T>
struct LbfgsArrays {
  std::int64_t elements, problems;
  std::int64_t pieces;  // that vectors are cut into, one a block
  std::int64_t groups;  // likewise where a block looks at one pair alone

  DeviceArray<T> position;             // of the trial
  DeviceArray<const T> gradient;       // there
  DeviceArray<const double> values;    // (problems), whose sum is made small
  DeviceArray<T> origin, direction;    // of the search
  DeviceArray<T> start_gradient;       // at the origin
  DeviceArray<T> kept;                 // (2, elements): GradientAt::first, second
  DeviceArray<T> moves, changes;       // (slots, elements): s, and y of the gradient
  DeviceArray<double> piece_values;    // (2, pieces)
  DeviceArray<double> group_products;  // (pair_products, slots, groups)
  DeviceArray<double> move_change;     // (slots, slots): s of the second index, y of the first
  DeviceArray<double> change_change;   // (slots, slots)
  DeviceArray<double> inverse;  // (slots, slots), of the upper triangle of S'Y: column of the first index, row of the second
  DeviceArray<double> gradient_products;  // (2, slots): s g, y g
  DeviceArray<double> factors;            // (2 slots + 1): of s, of y and of the gradient in the direction
  DeviceArray<LbfgsState> state;          // (1)
  DeviceArray<std::int64_t> phase;        // (1), a LbfgsPhase: the host begins a step and sees its end
  DeviceArray<const double> rate;         // (1): first trial of a search

  MPOL_DEVICE LbfgsPhase present_phase() const { return static_cast<LbfgsPhase>(phase[0]); }
  MPOL_DEVICE void set_phase(LbfgsPhase next) const { phase[0] = static_cast<std::int64_t>(next); }
  MPOL_DEVICE bool is_first() const { return state[0].iterations == 1; }
  /// Where the pair that is being tried lies.
  MPOL_DEVICE std::int64_t new_slot() const { return state[0].pairs % LbfgsLimits::slots; }
  MPOL_DEVICE std::int64_t piece_begin(std::int64_t piece) const { return elements * piece / pieces; }
  MPOL_DEVICE std::int64_t group_begin(std::int64_t group) const { return elements * group / groups; }
};

/// The products of a pair: s g, y g, s y', y y' with the gradient g and the change y' of the pair that is being tried.
inline constexpr int pair_products = 4;

/// In the order in which an evaluation runs them; value and gradient are found after `move`.
enum class LbfgsKernel { move, measure, judge, take, correlate, sum_up, direct, steer, aim };

}  // namespace mpol::ops
