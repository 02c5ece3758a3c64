#pragma once

// The kernels of L-BFGS over a few numbers; C++17.
#include <mpol_cpp/ops/lbfgs/lbfgs_vectors.h>

namespace mpol::ops {

/// One block: what the evaluation that was just made means.
template <typename T>
struct LbfgsJudgeBody {
  static constexpr int threads = 256, phases = 3, quantities = 3;
  struct Shared {
    BlockSums<quantities, threads> sums;
  };
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return 1; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if constexpr (phase == 0) {
      double sums[quantities] = {};
      for (std::int64_t i = place.thread; i < arrays.problems; i += threads) sums[0] += arrays.values[i];
      for (std::int64_t i = place.thread; i < arrays.pieces; i += threads) {
        sums[1] += arrays.piece_values[i];
        sums[2] += arrays.piece_values[arrays.pieces + i];
      }
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else if (place.thread == 0) {
      judge(shared.sums.total(0), shared.sums.total(1), shared.sums.total(2));
    }
  }

 private:
  MPOL_DEVICE void judge(double value, double slope, double gradient_sum) const {
    auto& state = arrays.state[0];
    state.keep = state.accepted = GradientAt::none;
    state.advance = state.begins = false;
    switch (arrays.present_phase()) {
      case LbfgsPhase::rest:
        return;
      case LbfgsPhase::begin:
        return begin(state, value, gradient_sum);
      case LbfgsPhase::search:
        return go_on(state, value, slope, gradient_sum);
    }
  }

  MPOL_DEVICE void begin(LbfgsState& state, double value, double gradient_sum) const {
    ++state.evaluations;
    state.step_iterations = 0;
    state.step_evaluations = 1;
    state.value = value;
    state.gradient_sum = gradient_sum;
    if (gradient_sum <= 0) return arrays.set_phase(LbfgsPhase::rest);
    state.accepted = GradientAt::trial;
    state.begins = true;
    count_iteration(state);
  }

  MPOL_DEVICE void go_on(LbfgsState& state, double value, double slope, double gradient_sum) const {
    const bool ended = state.search.judge(value, slope);
    state.keep = state.search.keep;
    ++state.evaluations;
    ++state.step_evaluations;
    if (!ended) return;
    state.accepted = state.search.accepted.gradient;
    state.step = state.search.accepted.step;
    state.value = state.search.accepted.value;
    const bool is_solved = state.accepted == GradientAt::trial && gradient_sum <= 0;
    const bool rests = state.step * state.search.largest <= 0;
    if (is_solved || rests || state.step_iterations == LbfgsLimits::iterations ||
        state.step_evaluations >= LbfgsLimits::evaluations) {
      return arrays.set_phase(LbfgsPhase::rest);
    }
    count_iteration(state);
  }

  MPOL_DEVICE void count_iteration(LbfgsState& state) const {
    state.advance = true;
    ++state.iterations;
    ++state.step_iterations;
  }
};

/// One block a pair: its products.
template <typename T>
struct LbfgsSumUpBody {
  static constexpr int threads = 128, phases = 3;
  struct Shared {
    BlockSums<pair_products, threads> sums;
  };
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return LbfgsLimits::slots; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    const auto pairs = LbfgsPairs::of(arrays.state[0].pairs);
    if (!arrays.state[0].advance || arrays.is_first() || place.block > pairs.count) return;
    const std::int64_t slot = pairs.slot(place.block);
    if constexpr (phase == 0) {
      double sums[pair_products] = {};
      for (int q = 0; q < pair_products; ++q) {
        const std::int64_t begin = (q * LbfgsLimits::slots + slot) * arrays.groups;
        for (std::int64_t i = place.thread; i < arrays.groups; i += threads) sums[q] += arrays.group_products[begin + i];
      }
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else if (place.thread == 0) {
      const std::int64_t tried = arrays.new_slot();
      arrays.gradient_products[slot] = shared.sums.total(0);
      arrays.gradient_products[LbfgsLimits::slots + slot] = shared.sums.total(1);
      arrays.move_change[tried * LbfgsLimits::slots + slot] = shared.sums.total(2);
      arrays.change_change[tried * LbfgsLimits::slots + slot] = shared.sums.total(3);
      arrays.change_change[slot * LbfgsLimits::slots + tried] = shared.sums.total(3);
    }
  }
};

/// One block: keeps the new pair if it has curvature, and finds the factors of the direction d = -H g. With the moves and
/// changes of all pairs as columns of S and Y, from the oldest on, R the upper triangle of S'Y, D its diagonal, p = R^-1 S'g,
///   H g = c g - c Y p + S R^-T ((D + c Y'Y) p - c Y'g),   c = s'y / (y'y) of the newest pair.
/// R^-1 itself is kept: a new pair, with r = S'y of the earlier ones, appends the column (-R^-1 r, 1) / (s'y) to it, and with the
/// oldest pair go its first row and column. So no row waits for another one's solution.
/// Source: Byrd, Nocedal & Schnabel 1994, Mathematical Programming 63, 129, formula 3.1.
template <typename T>
struct LbfgsDirectBody {
  static constexpr int threads = 128, phases = 4;
  static_assert(threads >= LbfgsLimits::slots, "one thread a pair, and one for that which is being tried");
  struct Shared {
    SharedArray<double, LbfgsLimits::slots> changes, rest;  // p, and what R^-T is multiplied by; of the pair in each slot
  };
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return 1; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if (!arrays.state[0].advance) return;
    const Next to = next();
    const std::int64_t number = LbfgsPairs::of(arrays.state[0].pairs).oldest + place.thread;
    if constexpr (phase == 0) {
      if (number <= arrays.state[0].pairs && !arrays.is_first()) append(number, to, shared);
    } else if constexpr (phase == 1) {
      if (to.pairs.has(number)) multiply(number, to, shared);
    } else if constexpr (phase == 2) {
      if (to.pairs.has(number)) write(number, to, shared);
    } else {
      if (place.thread == 0) finish(to);
    }
  }

 private:
  struct Next {
    LbfgsPairs pairs;
    double scale;
    std::int64_t kept;
    bool keeps;
  };
  /// Pairs and scale with the new pair, or without it where it has too little curvature. Nothing changes until finish().
  MPOL_DEVICE Next next() const {
    const auto& state = arrays.state[0];
    const std::int64_t at = arrays.new_slot() * LbfgsLimits::slots + arrays.new_slot();
    const bool keeps = !arrays.is_first() && arrays.move_change[at] > LbfgsLimits::least_curvature;
    const std::int64_t kept = state.pairs + (keeps ? 1 : 0);
    return {LbfgsPairs::of(kept), keeps ? arrays.move_change[at] / arrays.change_change[at] : state.scale, kept, keeps};
  }

  /// The row of R^-1 of pair `number`: its products with r and with S'g, the first of which makes the new column. That column is
  /// written whether the pair is kept or not; its slot is free until one is.
  MPOL_DEVICE void append(std::int64_t number, const Next& to, Shared& shared) const {
    const std::int64_t newest = arrays.state[0].pairs, tried = arrays.new_slot() * LbfgsLimits::slots;
    const int own = LbfgsPairs::slot_of(number);
    double change_sum = 0, gradient_sum = 0;
    int slot = own;
    for (std::int64_t column = number; column < newest; ++column, slot = LbfgsPairs::slot_after(slot)) {
      const double inverse = arrays.inverse[slot * LbfgsLimits::slots + own];
      change_sum += inverse * arrays.move_change[tried + slot];
      gradient_sum += inverse * arrays.gradient_products[slot];
    }
    const double element = (number == newest ? 1.0 : -change_sum) / arrays.move_change[tried + arrays.new_slot()];
    arrays.inverse[tried + own] = element;
    shared.changes[own] = to.keeps ? gradient_sum + element * arrays.gradient_products[arrays.new_slot()] : gradient_sum;
  }

  /// A row of (D + c Y'Y) p - c Y'g.
  MPOL_DEVICE void multiply(std::int64_t number, const Next& to, Shared& shared) const {
    const int own = LbfgsPairs::slot_of(number);
    double sum = -arrays.gradient_products[LbfgsLimits::slots + own];
    int slot = LbfgsPairs::slot_of(to.pairs.oldest);
    for (std::int64_t k = 0; k < to.pairs.count; ++k, slot = LbfgsPairs::slot_after(slot)) {
      sum += arrays.change_change[slot * LbfgsLimits::slots + own] * shared.changes[slot];
    }
    shared.rest[own] = arrays.move_change[own * LbfgsLimits::slots + own] * shared.changes[own] + to.scale * sum;
  }

  /// The factors of one pair's move, by its column of R^-1, and of its change.
  MPOL_DEVICE void write(std::int64_t number, const Next& to, Shared& shared) const {
    const int own = LbfgsPairs::slot_of(number);
    double sum = 0;
    int slot = LbfgsPairs::slot_of(to.pairs.oldest);
    for (std::int64_t row = to.pairs.oldest; row <= number; ++row, slot = LbfgsPairs::slot_after(slot)) {
      sum += arrays.inverse[own * LbfgsLimits::slots + slot] * shared.rest[slot];
    }
    arrays.factors[own] = -sum;
    arrays.factors[LbfgsLimits::slots + own] = to.scale * shared.changes[own];
  }

  MPOL_DEVICE void finish(const Next& to) const {
    arrays.factors[2 * LbfgsLimits::slots] = -to.scale;
    arrays.state[0].scale = to.scale;
    arrays.state[0].pairs = to.kept;
  }
};

/// One block: begins the search along the new direction, unless the objective does not fall along it.
template <typename T>
struct LbfgsAimBody {
  static constexpr int threads = 256, phases = 3;
  struct Shared {
    BlockSums<1, threads> slope;
    BlockMaximum<threads> largest;
  };
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return 1; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if (!arrays.state[0].advance) return;
    if constexpr (phase == 0) {
      double slope[1] = {}, largest = 0;
      for (std::int64_t i = place.thread; i < arrays.pieces; i += threads) {
        slope[0] += arrays.piece_values[i];
        largest = shared.largest.larger(largest, arrays.piece_values[arrays.pieces + i]);
      }
      shared.slope.put(place.thread, slope);
      shared.largest.put(place.thread, largest);
    } else if constexpr (phase == 1) {
      shared.slope.gather(place.thread);
      shared.largest.gather(place.thread);
    } else if (place.thread == 0) {
      aim(shared.slope.total(0), shared.largest.total());
    }
  }

 private:
  MPOL_DEVICE void aim(double slope, double largest) const {
    auto& state = arrays.state[0];
    const double limit = 1.0 / state.gradient_sum;
    state.step = arrays.rate[0] * (arrays.is_first() && limit < 1.0 ? limit : 1.0);
    state.previous_value = state.value;
    if (slope > 0) return arrays.set_phase(LbfgsPhase::rest);
    state.search.begin(state.value, slope, state.step, largest);
    arrays.set_phase(LbfgsPhase::search);
  }
};

}  // namespace mpol::ops
