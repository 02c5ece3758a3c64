#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <mpol_cpp/ops/memory/aligned_array.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_arrays.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_memory.h>
#include <mpol_cpp/ops/lbfgs/lbfgs_row_kernels.h>

namespace mpol::ops {

/// torch::optim::LBFGS with its strong Wolfe search (history of 100 pairs, up to 20 iterations a step, no tolerances) on the CPU:
/// what GpuLbfgs is on a GPU. A direction is found from the products of the pairs with each other and with the gradient, in
/// float64, so that the history is read twice an iteration: once for all new products, once to add the direction up. Vectors are
/// cut into the same pieces for any number of threads; results are bitwise the same.
/// Source: Byrd, Nocedal & Schnabel 1994, Mathematical Programming 63, 129, formula 3.1.
template <typename T>
class CpuLbfgs {
 public:
  /// @throws ValueError unless there is at least one element
  explicit CpuLbfgs(std::int64_t elements, Isa isa = selected_isa());

  /// One step from `position`, which it moves.
  /// @param position, gradient  `elements` each
  /// @param first_trial         of each search along a direction
  /// @param evaluate            returns the value at `position` and writes `gradient`
  void step(T* position, const T* gradient, double first_trial, const std::function<double()>& evaluate);

  /// Pairs are shared, not copied: they never change.
  LbfgsMemory memory() const;
  /// @throws ValueError for vectors of another size, or more pairs than the history holds
  void restore(const LbfgsMemory& memory);

  std::int64_t memory_bytes() const;

 private:
  static constexpr std::int64_t slots = LbfgsLimits::slots;
  static constexpr std::int64_t piece_elements =
      2048;  // both vectors that all pairs are multiplied by stay in the nearest caches

  struct Pair {
    Tensor move, change;
  };

  std::int64_t pieces() const { return (elements_ + piece_elements - 1) / piece_elements; }
  template <typename Task>
  void each_piece(const Task& task) const;

  void keep_accepted(T* position, const T* accepted);
  void correlate();
  void direct();
  bool aim(double first_trial);
  LbfgsSlope measure(const T* gradient) const;
  void move_to(T* position, double step) const;
  void keep_gradient(GradientAt place, const T* gradient);
  const T* gradient_at(GradientAt place, const T* trial) const;

  bool is_first() const { return iterations_ == 1; }
  std::int64_t new_slot() const { return pairs_ % slots; }
  Pair& empty_pair(std::int64_t slot);
  /// Where the moves of some pairs begin, then their changes.
  std::vector<const T*> places(const LbfgsPairs& pairs) const;
  double& of_pairs(std::vector<double>& table, std::int64_t row, std::int64_t column) const {
    return table[static_cast<std::size_t>(row * slots + column)];
  }

  std::int64_t elements_;
  LbfgsRowKernels<T> kernels_;
  WolfeSearch search_{};
  std::int64_t iterations_ = 0, evaluations_ = 0;  // of all steps
  std::int64_t pairs_ = 0;                         // kept so far; number p lies in slot p % slots
  double scale_ = 1, step_ = 0, value_ = 0, previous_value_ = 0, gradient_sum_ = 0;
  AlignedArray<T> origin_, direction_, start_gradient_;
  std::array<AlignedArray<T>, 2> kept_;    // GradientAt::first, second
  std::vector<Pair> history_;              // by slot
  std::vector<Pair> retired_;              // given to a memory() and since then replaced; used again when that has gone
  std::vector<double> move_change_;        // (slots, slots): s of the second index, y of the first
  std::vector<double> change_change_;      // (slots, slots)
  std::vector<double> gradient_products_;  // (2, slots): s g, y g
  std::vector<double> move_factors_, change_factors_;  // of the pairs in the direction, from the oldest on
};

}  // namespace mpol::ops
