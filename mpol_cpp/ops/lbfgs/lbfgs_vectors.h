#pragma once

// The kernels of L-BFGS over vectors; C++17. Each does nothing unless the state asks for it.
#include <mpol_cpp/ops/lbfgs/lbfgs_arrays.h>

namespace mpol::ops {

/// The largest of a block's threads, as BlockSums adds them up.
template <int threads>
struct BlockMaximum {
  static constexpr int groups = 16;
  SharedArray<double, threads> thread_values;
  SharedArray<double, groups> group_maxima;

  MPOL_DEVICE static double larger(double a, double b) { return a > b ? a : b; }

  MPOL_DEVICE void put(int thread, double value) { thread_values[thread] = value; }
  MPOL_DEVICE void gather(int thread) {
    if (thread >= groups) return;
    double maximum = 0;
    for (int t = thread; t < threads; t += groups) maximum = larger(maximum, thread_values[t]);
    group_maxima[thread] = maximum;
  }
  MPOL_DEVICE double total() {
    double maximum = 0;
    for (int group = 0; group < groups; ++group) maximum = larger(maximum, group_maxima[group]);
    return maximum;
  }
};

/// position = origin + step direction
template <typename T>
struct LbfgsMoveBody {
  static constexpr int threads = 256, phases = 1;
  struct Shared {};
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return arrays.pieces; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    if (arrays.present_phase() != LbfgsPhase::search) return;
    const T step = static_cast<T>(arrays.state[0].search.trial);
    const std::int64_t end = arrays.piece_begin(place.block + 1);
    for (std::int64_t i = arrays.piece_begin(place.block) + place.thread; i < end; i += threads) {
      arrays.position[i] = arrays.origin[i] + step * arrays.direction[i];
    }
  }
};

/// Slope along the direction, and the sum of the gradient's magnitudes.
template <typename T>
struct LbfgsMeasureBody {
  static constexpr int threads = 256, phases = 3;
  struct Shared {
    BlockSums<2, threads> sums;
  };
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return arrays.pieces; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if (arrays.present_phase() == LbfgsPhase::rest) return;
    if constexpr (phase == 0) {
      double sums[2] = {};
      const std::int64_t end = arrays.piece_begin(place.block + 1);
      for (std::int64_t i = arrays.piece_begin(place.block) + place.thread; i < end; i += threads) {
        const double gradient = static_cast<double>(arrays.gradient[i]);
        sums[0] += gradient * static_cast<double>(arrays.direction[i]);
        sums[1] += gpu_math::magnitude(gradient);
      }
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else if (place.thread < 2) {
      arrays.piece_values[place.thread * arrays.pieces + place.block] = shared.sums.total(place.thread);
    }
  }
};

/// Keeps the gradient of an end of the search; at its end goes to what it accepted, and from there on keeps the pair
///   s = step direction,   y = change of the gradient.
template <typename T>
struct LbfgsTakeBody {
  static constexpr int threads = 256, phases = 1;
  struct Shared {};
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return arrays.pieces; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const auto& state = arrays.state[0];
    if (state.keep == GradientAt::none && state.accepted == GradientAt::none) return;
    const std::int64_t end = arrays.piece_begin(place.block + 1);
    for (std::int64_t i = arrays.piece_begin(place.block) + place.thread; i < end; i += threads) take(state, i);
  }

 private:
  MPOL_DEVICE std::int64_t kept_at(GradientAt place, std::int64_t i) const {
    return static_cast<std::int64_t>(place) * arrays.elements + i;
  }

  MPOL_DEVICE T accepted_gradient(const LbfgsState& state, std::int64_t i) const {
    if (state.accepted == GradientAt::trial) return arrays.gradient[i];
    return state.accepted == GradientAt::start ? arrays.start_gradient[i] : arrays.kept[kept_at(state.accepted, i)];
  }

  MPOL_DEVICE void take(const LbfgsState& state, std::int64_t i) const {
    if (state.keep != GradientAt::none) arrays.kept[kept_at(state.keep, i)] = arrays.gradient[i];
    if (state.accepted == GradientAt::none) return;
    const T move = static_cast<T>(state.step) * arrays.direction[i];
    if (!state.begins) arrays.position[i] = arrays.origin[i] + move;
    if (!state.advance) return;
    const T gradient = accepted_gradient(state, i);
    if (!arrays.is_first()) {
      const std::int64_t at = arrays.new_slot() * arrays.elements + i;
      arrays.moves[at] = move;
      arrays.changes[at] = gradient - arrays.start_gradient[i];
    }
    arrays.origin[i] = arrays.position[i];
    arrays.start_gradient[i] = gradient;
  }
};

/// Products of each pair, the one that is being tried too, with that one's change and with the gradient. Blocks that look
/// at the same part of the vectors are neighbours.
template <typename T>
struct LbfgsCorrelateBody {
  static constexpr int threads = 256, phases = 3;
  struct Shared {
    BlockSums<pair_products, threads> sums;
  };
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return LbfgsLimits::slots * arrays.groups; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    const auto pairs = LbfgsPairs::of(arrays.state[0].pairs);
    const std::int64_t k = place.block % LbfgsLimits::slots, group = place.block / LbfgsLimits::slots;
    if (!arrays.state[0].advance || arrays.is_first() || k > pairs.count) return;
    if constexpr (phase == 0) {
      double sums[pair_products] = {};
      const std::int64_t slot = pairs.slot(k) * arrays.elements, tried = arrays.new_slot() * arrays.elements;
      const std::int64_t end = arrays.group_begin(group + 1);
      for (std::int64_t i = arrays.group_begin(group) + place.thread; i < end; i += threads) {
        const double move = static_cast<double>(arrays.moves[slot + i]), change = static_cast<double>(arrays.changes[slot + i]);
        const double gradient = static_cast<double>(arrays.start_gradient[i]);
        const double latest = static_cast<double>(arrays.changes[tried + i]);
        sums[0] += move * gradient;
        sums[1] += change * gradient;
        sums[2] += move * latest;
        sums[3] += change * latest;
      }
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else if (place.thread < pair_products) {
      arrays.group_products[(place.thread * LbfgsLimits::slots + pairs.slot(k)) * arrays.groups + group] =
          shared.sums.total(place.thread);
    }
  }
};

/// direction = sum over pairs of their factors times s and y, and the gradient's; its slope and largest element.
template <typename T>
struct LbfgsSteerBody {
  static constexpr int threads = 256, phases = 3;
  struct Shared {
    BlockSums<1, threads> slope;
    BlockMaximum<threads> largest;
  };
  struct Local {};

  LbfgsArrays<T> arrays;

  std::int64_t blocks() const { return arrays.pieces; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if (!arrays.state[0].advance) return;
    if constexpr (phase == 0) {
      double slope[1] = {}, largest = 0;
      const std::int64_t end = arrays.piece_begin(place.block + 1);
      for (std::int64_t i = arrays.piece_begin(place.block) + place.thread; i < end; i += threads) {
        const T direction = static_cast<T>(direction_at(i));
        arrays.direction[i] = direction;
        slope[0] += static_cast<double>(direction) * static_cast<double>(arrays.start_gradient[i]);
        largest = shared.largest.larger(largest, gpu_math::magnitude(static_cast<double>(direction)));
      }
      shared.slope.put(place.thread, slope);
      shared.largest.put(place.thread, largest);
    } else if constexpr (phase == 1) {
      shared.slope.gather(place.thread);
      shared.largest.gather(place.thread);
    } else if (place.thread == 0) {
      arrays.piece_values[place.block] = shared.slope.total(0);
      arrays.piece_values[arrays.pieces + place.block] = shared.largest.total();
    }
  }

 private:
  MPOL_DEVICE double direction_at(std::int64_t i) const {
    const auto pairs = LbfgsPairs::of(arrays.state[0].pairs);
    double sum = arrays.factors[2 * LbfgsLimits::slots] * static_cast<double>(arrays.start_gradient[i]);
    for (std::int64_t k = 0; k < pairs.count; ++k) {
      const std::int64_t slot = pairs.slot(k), at = slot * arrays.elements + i;
      sum += arrays.factors[slot] * static_cast<double>(arrays.moves[at]) +
             arrays.factors[LbfgsLimits::slots + slot] * static_cast<double>(arrays.changes[at]);
    }
    return sum;
  }
};

}  // namespace mpol::ops
