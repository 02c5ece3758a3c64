#pragma once

// The kernels of proximal gradient iterations, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/gpu/gpu_math.h>
#include <mpol_cpp/ops/proximal/gpu/pogm_arrays.h>

namespace mpol::ops {

/// w' and z' of every image, t' and c' of every problem, and the steps of the proximal map.
template <typename T>
struct PogmAdvanceBody {
  static constexpr int threads = ImagePieces::threads, phases = 1;
  struct Shared {};
  struct Local {};

  PogmArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.blocks(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const std::int64_t image = arrays.cut.image_of(place.block), problem = image / arrays.cut.nchan;
    const double t = arrays.t[problem], c = arrays.c[problem], step = 1.0 / arrays.curvatures[image];
    const double next_t = (1.0 + gpu_math::square_root(1.0 + 4.0 * t * t)) / 2.0;
    const double next_c = arrays.fista ? t : (2.0 * t + next_t - 1.0) / next_t;
    if (place.thread == 0 && place.block % arrays.cut.pieces() == 0) {
      arrays.steps[image] = arrays.fista ? step : next_c * step;
      if (image % arrays.cut.nchan == 0) arrays.next_t[problem] = next_t, arrays.next_c[problem] = next_c;
    }
    if (arrays.ended(problem, PogmEnd::repeats)) return;  // w' and z' are there
    const T slope = static_cast<T>(step);
    const T w_factor = static_cast<T>(arrays.fista ? (c - 1.0) / t : (t - 1.0) / next_t);
    const T y_factor = static_cast<T>(arrays.fista ? 0.0 : t / next_t);
    const T z_factor = static_cast<T>(arrays.fista ? 0.0 : (t - 1.0) / (c * next_t));
    arrays.cut.each(place, [&](std::int64_t pixel) {
      const std::int64_t at = image * arrays.cut.pixels + pixel;
      const T y = arrays.y[at], down = y - arrays.gradient[at] * slope;
      T ahead = down + (down - arrays.w[at]) * w_factor;
      if (!arrays.fista) ahead += (down - y) * y_factor + (arrays.z[at] - y) * z_factor;
      arrays.w[at] = down;
      arrays.z[at] = ahead;
    });
  }
};

/// What pieces of images tell of the step from y to next.
template <typename T>
struct PogmCompareBody {
  static constexpr int threads = ImagePieces::threads, phases = 3;
  struct Shared {
    BlockSums<pogm_sums, threads> sums;
  };
  struct Local {};

  PogmArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.blocks(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if constexpr (phase == 0) {
      double sums[pogm_sums] = {};
      const std::int64_t begin = arrays.cut.image_of(place.block) * arrays.cut.pixels;
      arrays.cut.each(place, [&](std::int64_t pixel) {
        const std::int64_t at = begin + pixel;
        const T y = arrays.y[at], next = arrays.next[at], change = next - y;
        const T gradient = arrays.gradient[at], next_gradient = arrays.next_gradient[at];
        sums[along_sum] += static_cast<double>(change * (next_gradient + gradient));
        sums[bends_sum] += static_cast<double>(change * (next_gradient - gradient));
        sums[lengths_sum] += static_cast<double>(change * change);
        sums[pixels_sum] += static_cast<double>(y);
        sums[next_pixels_sum] += static_cast<double>(next);
      });
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else {
      for (int q = place.thread; q < pogm_sums; q += threads)
        arrays.piece_sums[q * arrays.cut.blocks() + place.block] = shared.sums.total(q);
    }
  }
};

/// One block a problem: raises curvatures where f shows more, and decides whether the problem moves, repeats or begins anew.
template <typename T>
struct PogmJudgeBody {
  static constexpr int threads = ImagePieces::threads, phases = 4;
  enum : int { along, bends, allowed, pixels, next_pixels, raised, quantities };
  struct Shared {
    BlockSums<quantities, threads> sums;
    double factor;  // of all curvatures of the problem; 0: they stay
  };
  struct Local {};

  PogmArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.problems; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if constexpr (phase == 0) shared.sums.put(place.thread, sums_of_thread(place).of);
    if constexpr (phase == 1) shared.sums.gather(place.thread);
    if constexpr (phase == 2) {
      if (place.thread == 0) decide(place.block, shared);
    }
    if constexpr (phase == 3) {
      if (shared.factor == 0) return;
      for_channels(place, [&](std::int64_t image) { arrays.curvatures[image] *= shared.factor; });
    }
  }

 private:
  struct Sums {
    double of[quantities];
  };

  template <typename Run>
  MPOL_DEVICE void for_channels(Place place, const Run& run) const {
    for (int c = place.thread; c < arrays.cut.nchan; c += threads) run(place.block * arrays.cut.nchan + c);
  }

  MPOL_DEVICE double sum_of(PogmSum which, std::int64_t image) const { return arrays.sums[which * arrays.cut.images() + image]; }

  MPOL_DEVICE Sums sums_of_thread(Place place) const {
    Sums sums{};
    for_channels(place, [&](std::int64_t image) {
      const double own_bends = sum_of(bends_sum, image), lengths = sum_of(lengths_sum, image);
      const double own_allowed = arrays.curvatures[image] * lengths;
      sums.of[along] += sum_of(along_sum, image);
      sums.of[bends] += own_bends;
      sums.of[allowed] += own_allowed;
      sums.of[pixels] += sum_of(pixels_sum, image);
      sums.of[next_pixels] += sum_of(next_pixels_sum, image);
      if (arrays.mixes_images || arrays.ended(place.block, PogmEnd::held)) return;
      if (!(own_bends > own_allowed * arrays.rounding_of_curvature)) return;
      arrays.curvatures[image] = arrays.margin_of_curvature * own_bends / lengths;
      sums.of[raised] += 1;
    });
    return sums;
  }

  MPOL_DEVICE void decide(std::int64_t problem, Shared& shared) const {
    const double all_bends = shared.sums.total(bends), all_allowed = shared.sums.total(allowed);
    const bool held = arrays.ended(problem, PogmEnd::held);
    const bool too_long =
        arrays.mixes_images ? all_bends > all_allowed * arrays.rounding_of_curvature : shared.sums.total(raised) > 0;
    shared.factor = arrays.mixes_images && too_long && !held ? arrays.margin_of_curvature * all_bends / all_allowed : 0.0;
    const double rise = arrays.next_regularizers[problem] - arrays.regularizers[problem] + shared.sums.total(along) / 2.0;
    const bool rises = rise > 0 && !arrays.ended(problem, PogmEnd::began_anew);
    const bool repeats =
        !too_long && rises && arrays.ended(problem, PogmEnd::moved) && arrays.passes[problem] < arrays.most_passes;
    if (repeats && arrays.passes[problem] == arrays.in_force[problem])
      arrays.passes[problem] = more_passes(arrays.passes[problem], arrays.most_passes);
    const bool stays = too_long || rises || held;
    const std::int64_t problems = arrays.cut.problems;
    for (std::int64_t column = 0; column < arrays.columns; ++column) {
      const std::int64_t at = column * problems + problem;
      arrays.report[at] = arrays.losses[at];
      if (!stays) arrays.losses[at] = arrays.next_losses[at];
    }
    arrays.report[arrays.columns * problems + 1 + problem] = stays ? 0.0 : -rise;
    arrays.pixel_sums[problem] = shared.sums.total(stays ? pixels : next_pixels);
    if (held) return;
    arrays.set_end(problem, repeats ? PogmEnd::repeats : stays ? PogmEnd::began_anew : PogmEnd::moved);
    if (repeats) return;
    if (!stays) arrays.regularizers[problem] = arrays.next_regularizers[problem];
    arrays.t[problem] = stays ? 1.0 : arrays.next_t[problem];
    arrays.c[problem] = stays ? 1.0 : arrays.next_c[problem];
  }
};

/// Problems that move take the next point; those that begin anew do so where they are.
template <typename T>
struct PogmChooseBody {
  static constexpr int threads = ImagePieces::threads, phases = 1;
  struct Shared {};
  struct Local {};

  PogmArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.blocks(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    if (place.block == 0 && place.thread == 0) {
      double sum = 0;
      for (std::int64_t problem = 0; problem < arrays.cut.problems; ++problem) sum += arrays.pixel_sums[problem];
      arrays.report[arrays.columns * arrays.cut.problems] = sum;
    }
    const std::int64_t image = arrays.cut.image_of(place.block);
    const std::int64_t problem = image / arrays.cut.nchan;
    if (arrays.ended(problem, PogmEnd::repeats)) return;
    const bool stays = arrays.ended(problem, PogmEnd::began_anew) || arrays.ended(problem, PogmEnd::held);
    arrays.cut.each(place, [&](std::int64_t pixel) {
      const std::int64_t at = image * arrays.cut.pixels + pixel;
      if (stays) {
        arrays.w[at] = arrays.z[at] = arrays.y[at];
      } else {
        arrays.y[at] = arrays.next[at];
        arrays.gradient[at] = arrays.next_gradient[at];
      }
    });
  }
};

/// Calls run(body) with the body of a kernel.
template <typename T, typename Run>
void with_body(PogmKernel kernel, const PogmArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case PogmKernel::advance:
      return run(PogmAdvanceBody<T>{arrays});
    case PogmKernel::compare:
      return run(PogmCompareBody<T>{arrays});
    case PogmKernel::sum_up:
      return run(SumPiecesBody<PogmArrays<T>, pogm_sums>{arrays});
    case PogmKernel::judge:
      return run(PogmJudgeBody<T>{arrays});
    case PogmKernel::choose:
      return run(PogmChooseBody<T>{arrays});
  }
}

}  // namespace mpol::ops
