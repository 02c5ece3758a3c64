#pragma once

// Several fused steps in one kernel, for images so small that the starts of kernels are much of a step; C++17.
#include <stdexcept>
#include <type_traits>

#include <mpol_cpp/ops/fused/gpu/fused_gpu_launch.h>

namespace mpol::ops {

/// The kernels of FusedGpuPipeline as stages (ops/gpu/block.h), on images that are cut into rows:
///   map, and collect of the step before
///   weigh, square, curve
///   finish
/// The results are those of the kernels one by one: in the emulation to the bit, on a GPU as far as the compiler joins products
/// and sums alike in both.
/// @tparam Tile     of square and curve
/// @tparam Joining  as PixelTerms has them
template <typename T, typename Rows, typename Tile, typename Joining>
class FusedSteps {
  using Map = MapRowsBody<T, Rows, RowsOf::base>;
  using Weigh = WeighColumnsBody<T, Rows>;
  using Square = SquareBody<T, Tile>;
  using Curve = CurveBody<T, Tile>;
  using Finish = FinishRowsBody<T, Rows, Joining>;
  using Collect = CollectBody<T>;

 public:
  static constexpr int threads = Rows::threads > Collect::threads ? Rows::threads : Collect::threads;
  static_assert(Tile::threads <= threads);
  static constexpr int least_blocks = 1;

  FusedSteps(const GpuArrays<T>& arrays, int steps) : bodies_{{arrays}}, steps_(steps) {}

  MPOL_DEVICE int stages() const { return steps_ * stages_of_step + 1; }

  template <typename Run>
  MPOL_DEVICE void with_bodies(int stage, const Run& run) const {
    const int step = stage / stages_of_step;
    switch (stage - step * stages_of_step) {
      case 0:
        if (step < steps_) run(bodies_.map);
        if (step > 0) run(bodies_.collect);
        return;
      case 1:
        run(bodies_.weigh);
        if (bodies_.map.arrays.template uses<regularizers::Driver::spectra>()) run(bodies_.square);
        if (bodies_.map.arrays.template uses<regularizers::Driver::curvatures>()) run(bodies_.curve);
        return;
      default:
        run(bodies_.finish);
    }
  }

 private:
  static constexpr int stages_of_step = 3;

  /// Each is its arrays and nothing else, so that all share one copy, which stays where a kernel's parameters are.
  union Bodies {
    Map map;
    Weigh weigh;
    Square square;
    Curve curve;
    Finish finish;
    Collect collect;
  };
  static_assert(std::is_standard_layout_v<Bodies> && sizeof(Bodies) == sizeof(GpuArrays<T>));

  Bodies bodies_;
  int steps_;
};

/// So many steps of images whose rows are cut in one way, and which are cut into low tiles beside.
struct StepsKernel {
  TileKind rows;
  int steps;

  /// Eight rows are for images that keep a device busy by themselves.
  static bool has(TileKind rows) {
    return rows == TileKind::two_rows || rows == TileKind::four_rows || rows == TileKind::odd_rows;
  }
};

/// Calls run(stages) with the steps, of rows that StepsKernel has. The odd kind is for the emulation alone.
template <typename T, typename Run>
void with_stages(StepsKernel kernel, const GpuArrays<T>& arrays, const Run& run) {
  using regularizers::JoiningKinds, regularizers::Kinds;
  const bool joins = regularizers::has_any(JoiningKinds{}, [&](TermKind kind) { return arrays.has(kind); });
  const auto with_rows = [&](auto rows, auto tile) {
    using Rows = decltype(rows);
    using Tile = decltype(tile);
    if (joins) run(FusedSteps<T, Rows, Tile, JoiningKinds>(arrays, kernel.steps));
    else run(FusedSteps<T, Rows, Tile, Kinds<>>(arrays, kernel.steps));
  };
  switch (kernel.rows) {
#ifndef __CUDACC__
    case TileKind::odd_rows:
      return with_rows(OddRows{}, OddTile{});
#endif
    case TileKind::two_rows:
      return with_rows(TwoRows{}, LowTile{});
    case TileKind::four_rows:
      return with_rows(FourRows{}, LowTile{});
    default:
      throw std::logic_error("there are no steps in one kernel for images that are cut like this");
  }
}

}  // namespace mpol::ops
