#pragma once

// The last kernel of a fused step, which adds up what the others summed; C++17.
#include <cmath>

#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>

namespace mpol::ops {

/// Factors of Adam's learning rate and of the square root of its second moment in step `step`, counted from 1.
struct AdamBias {
  double rate, second;

  MPOL_DEVICE static AdamBias of(std::int64_t step, const GpuConstants& constants) {
    using std::pow;
    using std::sqrt;
    const double count = static_cast<double>(step);
    return {1.0 / (1.0 - pow(constants.beta1, count)), 1.0 / sqrt(1.0 - pow(constants.beta2, count))};
  }
};

/// One block a problem: its losses into the history, its counters one step on, and whether it stands still from now on.
template <typename T>
struct CollectBody {
  static constexpr int threads = 256, phases = 3, quantities = half_plane_sums + image_sums;
  struct Shared {
    BlockSums<quantities, threads> sums;
  };
  struct Local {};

  GpuArrays<T> arrays;

  MPOL_DEVICE std::int64_t blocks() const { return arrays.shape.problems; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if constexpr (phase == 0) {
      for (int q = 0; q < half_plane_sums; ++q)
        shared.sums.put(place.thread, q, partial(arrays.plane_sums, arrays.plane_pieces, q, place));
      for (int q = 0; q < image_sums; ++q) shared.sums.put(place.thread, half_plane_sums + q, partial_of_images(q, place));
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else if (place.thread == 0) {
      write_losses(place.block, shared);
      count_step(place.block);
    }
  }

 private:
  MPOL_DEVICE double partial_of_images(int quantity, Place place) const {
    if (!arrays.constants.summed[quantity]) return 0;
    if (quantity < finish_sums) return partial(arrays.pixel_sums, arrays.image_pieces, quantity, place);
    return partial(arrays.curve_sums, arrays.curve_pieces, quantity - finish_sums, place);
  }

  /// What one thread adds up of the pieces of a problem.
  MPOL_DEVICE double partial(const DeviceArray<double>& values, std::int64_t pieces, int quantity, Place place) const {
    const std::int64_t own = arrays.shape.nchan * pieces, begin = (quantity * arrays.shape.problems + place.block) * own;
    double sum = 0;
    for (std::int64_t i = place.thread; i < own; i += threads) sum += values[begin + i];
    return sum;
  }

  MPOL_DEVICE void write_losses(std::int64_t problem, Shared& shared) const {
    const auto& constants = arrays.constants;
    const std::int64_t rows = constants.columns + 1, problems = arrays.shape.problems;
    const DeviceArray<double> history{reinterpret_cast<double*>(arrays.history[0]), arrays.entries * rows * problems};
    const std::int64_t begin = arrays.entry[problem] * rows * problems + problem;
    const double nll = (arrays.constant[problem] + shared.sums.total(0)) * arrays.scale[problem];
    double total = nll;
    for (int column = 2; column < constants.columns; ++column) {
      const double weight = arrays.weight_of(static_cast<TermKind>(constants.term_of_column[column]), problem);
      const double sum = shared.sums.total(constants.sum_of_column[column]);
      const double value = weight == 0 ? 0.0 : weight * (sum / constants.divisor_of_column[column]);
      history[begin + column * problems] = value;
      total += value;
    }
    history[begin] = arrays.total[problem] = total;
    history[begin + problems] = nll;
    history[begin + constants.columns * problems] = shared.sums.total(half_plane_sums + parameters_sum);
  }

  MPOL_DEVICE void count_step(std::int64_t problem) const {
    ++arrays.entry[problem];
    if (arrays.stopped[problem] != 0 || arrays.constants.update == FusedUpdate::none) return;
    const std::int64_t next = ++arrays.steps[problem] + 1;
    const auto bias = AdamBias::of(next, arrays.constants);
    arrays.bias[problem] = bias.rate;
    arrays.bias[arrays.shape.problems + problem] = bias.second;
    if (arrays.constants.stop_window > 0 && has_converged(problem)) arrays.stopped[problem] = 1;
  }

  /// Decides as train/problem_stops.h does on the host, in the same arithmetic, and remembers the step's total.
  MPOL_DEVICE bool has_converged(std::int64_t problem) const {
    const std::int64_t entries = arrays.constants.stop_window + 1, problems = arrays.shape.problems;
    const std::int64_t own = arrays.recorded[problem]++ % entries;
    const double now = arrays.total[problem];
    arrays.recent[own * problems + problem] = now;
    if (arrays.recorded[problem] < entries) return false;
    for (std::int64_t entry = 0; entry < entries; ++entry) {
      const double before = arrays.recent[entry * problems + problem];
      if (entry != own && !(std::fabs(before - now) <= arrays.constants.stop_relative * std::fabs(before))) return false;
    }
    return true;
  }
};

}  // namespace mpol::ops
