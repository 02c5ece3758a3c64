#pragma once

// The kernels of the dual steps of cubes (solvers/cube_proximal.h has the equations); C++17.
#include <mpol_cpp/ops/gpu/gpu_math.h>
#include <mpol_cpp/ops/proximal/gpu/cube_dual_arrays.h>

namespace mpol::ops {

inline constexpr double root_of_two = 1.4142135623730951;

/// What blocks of the pass before said of turning becomes the momentum of this one, as DualAscent has it.
template <typename T>
struct CubeTurn {
  const CubeDualArrays<T>& arrays;
  std::int64_t problem;

  /// What one of `threads` threads adds up.
  MPOL_DEVICE double partial(int thread, int threads) const {
    if (arrays.pass == 0) return 0;
    const std::int64_t count = arrays.cut.nchan * arrays.cut.pieces();
    double sum = 0;
    for (std::int64_t i = thread; i < count; i += threads) sum += arrays.block_turns[problem * count + i];
    return sum;
  }
  /// @param writes  it down for the kernels that follow
  MPOL_DEVICE double momentum(double turns, bool writes) const {
    const std::int64_t problems = arrays.cut.problems;
    const bool anew = arrays.pass == 0 || turns > 0;
    const double t = anew ? 1.0 : arrays.t[(arrays.pass - 1) * problems + problem];
    const double next = anew ? 1.0 : (1.0 + gpu_math::square_root(1.0 + 4.0 * t * t)) / 2.0;
    const double momentum = anew ? 0.0 : (t - 1.0) / next;
    if (writes) arrays.t[arrays.pass * problems + problem] = next, arrays.momentum[problem] = momentum;
    return momentum;
  }
};

/// One block a problem.
template <typename T>
struct CubeTurnBody {
  static constexpr int threads = ImagePieces::threads, phases = 3;
  struct Shared {
    BlockSums<1, threads> sums;
  };
  struct Local {};

  CubeDualArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.problems; }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if (!arrays.is_on(place.block)) return;
    const CubeTurn<T> turn{arrays, place.block};
    if constexpr (phase == 0) shared.sums.put(place.thread, 0, turn.partial(place.thread, threads));
    if constexpr (phase == 1) shared.sums.gather(place.thread);
    if constexpr (phase == 2) {
      if (place.thread == 0) turn.momentum(shared.sums.total(0), /*writes=*/true);
    }
  }
};

/// The dual images of one problem, and where they are looked at: v = p + momentum (p - before).
template <typename T>
struct CubeDuals {
  const CubeDualArrays<T>& arrays;
  const DeviceArray<const T>&now, &before;
  T momentum;

  /// @param passes  that the problem has had
  MPOL_DEVICE static CubeDuals of(const CubeDualArrays<T>& arrays, std::int64_t passes, double momentum) {
    const bool even = passes % 2 == 0;
    return {arrays, even ? arrays.even : arrays.odd, even ? arrays.odd : arrays.even, static_cast<T>(momentum)};
  }

  MPOL_DEVICE T operator()(int plane, std::int64_t at) const {
    const std::int64_t place = plane * arrays.plane_size() + at;
    const T own = now[place];
    return momentum == T(0) ? own : own + momentum * (own - before[place]);
  }
};

/// A pixel, its place among all images, and its neighbours.
struct CubePixel {
  std::int64_t at;
  std::int32_t row, column;

  template <typename T>
  MPOL_DEVICE static CubePixel of(const CubeDualArrays<T>& arrays, std::int64_t image, std::int64_t pixel) {
    const auto npix = static_cast<std::uint32_t>(arrays.npix), own = static_cast<std::uint32_t>(pixel), row = own / npix;
    return {image * arrays.cut.pixels + pixel, static_cast<std::int32_t>(row), static_cast<std::int32_t>(own - row * npix)};
  }
};

/// k_1 D^T v_1 + k_2 E^T v_2 + k_3 v_3 + k_4 B^T v_4
template <typename T>
class CubeSlope {
 public:
  MPOL_DEVICE CubeSlope(const CubeDualArrays<T>& arrays, std::int64_t image, std::int64_t passes, double momentum)
      : arrays_(arrays), v_(CubeDuals<T>::of(arrays, passes, momentum)), image_(image), problem_(arrays.problem_of(image)) {}

  MPOL_DEVICE T operator()(const CubePixel& own) const {
    const T of_variation = arrays_.weight(variation_part, problem_);
    T slope = of_variation == T(0) ? T(0) : of_variation * differences(own);
    if (arrays_.has(channels_part)) slope += arrays_.weight(channels_part, problem_) * channels(own);
    if (arrays_.has(spectra_part)) slope += arrays_.weight(spectra_part, problem_) * v_(arrays_.plane[spectra_part], own.at);
    if (arrays_.has(curvature_part)) slope += arrays_.weight(curvature_part, problem_) * second_differences(own);
    return slope;
  }

 private:
  /// D^T
  MPOL_DEVICE T differences(const CubePixel& own) const {
    T value = -v_(0, own.at) - v_(1, own.at);
    if (own.row > 0) value += v_(0, own.at - arrays_.npix);
    if (own.column > 0) value += v_(1, own.at - 1);
    return value;
  }
  /// E^T
  MPOL_DEVICE T channels(const CubePixel& own) const {
    const int plane = arrays_.plane[channels_part];
    T value = -v_(plane, own.at);
    if (image_ % arrays_.cut.nchan > 0) value += v_(plane, own.at - arrays_.cut.pixels);
    return value;
  }
  /// B^T
  MPOL_DEVICE T second_differences(const CubePixel& own) const {
    const int rows = arrays_.plane[curvature_part], columns = rows + 1, mixed = rows + 2;
    const std::int64_t at = own.at, row = arrays_.npix;
    const bool below = own.row > 0, above = own.row + 1 < arrays_.npix, left = own.column > 0,
               right = own.column + 1 < arrays_.npix;
    T value = T(-2) * (v_(rows, at) + v_(columns, at)), of_mixed = v_(mixed, at);
    if (below) value += v_(rows, at - row), of_mixed -= v_(mixed, at - row);
    if (above) value += v_(rows, at + row);
    if (left) value += v_(columns, at - 1), of_mixed -= v_(mixed, at - 1);
    if (right) value += v_(columns, at + 1);
    if (below && left) of_mixed += v_(mixed, at - row - 1);
    return value + static_cast<T>(root_of_two) * of_mixed;
  }

  const CubeDualArrays<T>& arrays_;
  CubeDuals<T> v_;
  std::int64_t image_, problem_;
};

/// The slope of all pixels.
/// @tparam last  of the dual images as they are after all passes
template <typename T, bool last>
struct CubeGatherBody {
  static constexpr int threads = ImagePieces::threads, phases = 1;
  struct Shared {};
  struct Local {};

  CubeDualArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.blocks(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const std::int64_t image = arrays.cut.image_of(place.block), problem = arrays.problem_of(image);
    if (!last && !arrays.is_on(problem)) return;
    const CubeSlope<T> slope(arrays, image, last ? arrays.passes[problem] : arrays.pass, last ? 0.0 : arrays.momentum[problem]);
    arrays.cut.each(place, [&](std::int64_t pixel) {
      const auto own = CubePixel::of(arrays, image, pixel);
      arrays.slope[own.at] = slope(own);
    });
  }
};

/// x = cut(q - s S slope) M, of which S x is written, or, at last, x and the dual images.
/// @tparam alone  whether blocks add up what turned and gather slopes by themselves, without kernels for either
template <typename T, typename Tile, bool last, bool alone>
struct CubeLookBody {
  static constexpr int threads = Tile::threads, phases = 5;
  static constexpr int slope_width = Tile::width + 4, slope_height = Tile::height + 4;  // from 2 pixels before the tile
  static constexpr int image_width = Tile::width + 2, image_height = Tile::height + 2;  // from 1
  struct Shared {
    SharedArray<T, slope_width * slope_height> slope;
    SharedArray<T, image_width * image_height> image;
    BlockSums<1, threads> sums;  // where it is alone
  };
  struct Local {};

  CubeDualArrays<T> arrays;

  MPOL_DEVICE std::uint32_t tiles_along() const {
    return (static_cast<std::uint32_t>(arrays.npix) + Tile::width - 1) / Tile::width;
  }
  MPOL_DEVICE std::uint32_t tiles() const {
    return tiles_along() * ((static_cast<std::uint32_t>(arrays.npix) + Tile::height - 1) / Tile::height);
  }
  std::int64_t blocks() const { return arrays.cut.images() * tiles(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    const std::int64_t image = place.block / tiles(), problem = arrays.problem_of(image);
    if (!last && !arrays.is_on(problem)) return;
    const std::uint32_t tile = static_cast<std::uint32_t>(place.block - image * tiles()), row = tile / tiles_along();
    const Corner corner{image, static_cast<std::int32_t>(row * Tile::height),
                        static_cast<std::int32_t>((tile - row * tiles_along()) * Tile::width)};
    constexpr bool turns = !last && alone;
    if constexpr (phase == 0) {
      if constexpr (turns) shared.sums.put(place.thread, 0, CubeTurn<T>{arrays, problem}.partial(place.thread, threads));
    }
    if constexpr (phase == 1) {
      if constexpr (turns) shared.sums.gather(place.thread);
    }
    if constexpr (phase == 2) {
      double momentum = 0;
      if constexpr (turns) {
        const bool writes = place.thread == 0 && tile == 0 && image % arrays.cut.nchan == 0;
        momentum = CubeTurn<T>{arrays, problem}.momentum(shared.sums.total(0), writes);
      }
      find_slope(corner, place.thread, last ? arrays.passes[problem] : arrays.pass, momentum, shared);
    }
    if constexpr (phase == 3) {
      const T step = static_cast<T>(arrays.step(variation_part, image));
      const auto cut = arrays.cut_of(image);
      each<1, image_width, image_height>(corner, place.thread, [&](int k, const CubePixel& own, bool inside) {
        const int slope = (k / image_width + 1) * slope_width + k % image_width + 1;
        shared.image[k] = inside ? primal(cut, own.at, step, smoothed(shared.slope, slope, slope_width)) : T(0);
      });
    }
    if constexpr (phase == 4) {
      const bool copies = last && arrays.passes[problem] % 2 == 1;
      each<0, Tile::width, Tile::height>(corner, place.thread, [&](int k, const CubePixel& pixel, bool inside) {
        if (!inside) return;
        const std::int64_t at = pixel.at;
        const int own = (k / Tile::width + 1) * image_width + k % Tile::width + 1;
        if (!last) {
          arrays.seen[at] = smoothed(shared.image, own, image_width);
          return;
        }
        arrays.x[at] = shared.image[own];
        if (!copies) return;
        const std::int64_t planes = arrays.dual.size / arrays.plane_size();
        for (std::int64_t plane = 0; plane < planes; ++plane) {
          const std::int64_t place_of_dual = plane * arrays.plane_size() + at;
          arrays.dual[place_of_dual] = arrays.odd[place_of_dual];
        }
      });
    }
  }

 private:
  struct Corner {
    std::int64_t image;
    std::int32_t row, column;
  };

  template <int reach, int width, int height, typename Run>
  MPOL_DEVICE void each(const Corner& corner, int thread, const Run& run) const {
    const auto npix = static_cast<std::uint32_t>(arrays.npix);
    for (int k = thread; k < width * height; k += threads) {
      const auto r = static_cast<std::uint32_t>(corner.row + k / width - reach),
                 c = static_cast<std::uint32_t>(corner.column + k % width - reach);
      const bool inside = r < npix && c < npix;
      const std::int64_t at = inside ? corner.image * arrays.cut.pixels + (r * npix + c) : 0;
      run(k, CubePixel{at, static_cast<std::int32_t>(r), static_cast<std::int32_t>(c)}, inside);
    }
  }

  MPOL_DEVICE void find_slope(const Corner& corner, int thread, std::int64_t passes, double momentum, Shared& shared) const {
    const auto put = [&](const auto& slope_at) {
      each<2, slope_width, slope_height>(
          corner, thread, [&](int k, const CubePixel& own, bool inside) { shared.slope[k] = inside ? slope_at(own) : T(0); });
    };
    if constexpr (alone) put(CubeSlope<T>(arrays, corner.image, passes, momentum));
    else put([&](const CubePixel& own) { return arrays.slope[own.at]; });
  }

  template <typename Values>
  MPOL_DEVICE T smoothed(Values& values, int at, int width) const {
    return arrays.hann ? gpu_math::hann<T>(values, at, width) : values[at];
  }

  MPOL_DEVICE T primal(PixelCut<T> cut, std::int64_t at, T step, T slope) const {
    const T shining = cut(arrays.q[at] - slope * step);
    return arrays.mask.size > 0 ? shining * arrays.mask[at] : shining;
  }
};

/// What an image's duals rise by, and what the rise counts where turning is told.
template <typename T>
struct CubeClimb {
  T factor;
  double turn;

  MPOL_DEVICE static CubeClimb of(const CubeDualArrays<T>& arrays, CubePart part, std::int64_t image) {
    const std::int64_t at = part * std::int64_t{arrays.cut.problems} + arrays.problem_of(image);
    const double weight = arrays.weights[at], climb = arrays.climbs[at], step = arrays.step(part, image);
    if (!(weight > 0)) return {T(0), 0.0};
    return {static_cast<T>(climb / step), step * (weight / climb)};
  }
};

/// What the spectra of each pixel are multiplied with to be no longer than 1.
template <typename T>
struct CubeNormsBody {
  static constexpr int threads = ImagePieces::threads, phases = 1;
  static constexpr int least_blocks = 2;  // of a processor: for more the compiler would spill registers
  struct Shared {};
  struct Local {};

  CubeDualArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.problems * arrays.cut.pieces(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const std::int64_t problem = place.block / arrays.cut.pieces();
    if (!arrays.is_on(problem)) return;
    const auto v = CubeDuals<T>::of(arrays, arrays.pass, arrays.momentum[problem]);
    const std::int64_t first = problem * arrays.cut.nchan;
    const T factor = CubeClimb<T>::of(arrays, spectra_part, first).factor;  // all channels have the same step
    arrays.cut.each(place, [&](std::int64_t pixel) {
      T sum = T(0);
      for (std::int64_t channel = 0; channel < arrays.cut.nchan; ++channel) {
        const std::int64_t at = (first + channel) * arrays.cut.pixels + pixel;
        const T value = v(arrays.plane[spectra_part], at) + factor * arrays.seen[at];
        sum += value * value;
      }
      arrays.cuts[problem * arrays.cut.pixels + pixel] = sum > T(1) ? gpu_math::reciprocal_square_root(sum) : T(1);
    });
  }
};

/// u' of all parts, and what it says of turning.
template <typename T>
struct CubeRaiseBody {
  static constexpr int threads = ImagePieces::threads, phases = 3;
  struct Shared {
    BlockSums<1, threads> sums;
  };
  struct Local {
    double turned;
  };

  CubeDualArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.blocks(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    const std::int64_t image = arrays.cut.image_of(place.block), problem = arrays.problem_of(image);
    if (!arrays.is_on(problem)) return;
    if constexpr (phase == 0) {
      local.turned = 0;
      const auto v = CubeDuals<T>::of(arrays, arrays.pass, arrays.momentum[problem]);
      const Raise raise{arrays, v, local};
      raise_differences(raise, place, image);
      if (arrays.has(channels_part)) raise_channels(raise, place, image);
      if (arrays.has(spectra_part)) raise_spectra(raise, place, image);
      if (arrays.has(curvature_part)) raise_curvature(raise, place, image);
      shared.sums.put(place.thread, 0, local.turned);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else if (place.thread == 0) {
      arrays.block_turns[place.block] = shared.sums.total(0);
    }
  }

 private:
  /// Writes a dual of a pixel.
  struct Raise {
    const CubeDualArrays<T>& arrays;
    const CubeDuals<T>& v;
    Local& local;

    MPOL_DEVICE void operator()(int plane, std::int64_t at, T ahead, T raised, double turn) const {
      const std::int64_t place = plane * arrays.plane_size() + at;
      local.turned += turn * static_cast<double>((ahead - raised) * (raised - v.now[place]));
      arrays.next[place] = raised;
    }
  };

  MPOL_DEVICE static T cut_of(T square) { return square > T(1) ? gpu_math::reciprocal_square_root(square) : T(1); }

  MPOL_DEVICE void raise_differences(const Raise& raise, Place place, std::int64_t image) const {
    const auto climb = CubeClimb<T>::of(arrays, variation_part, image);
    arrays.cut.each(place, [&](std::int64_t pixel) {
      const auto own = CubePixel::of(arrays, image, pixel);
      const T ahead_rows = raise.v(0, own.at), ahead_columns = raise.v(1, own.at);
      T rows = ahead_rows, columns = ahead_columns;
      if (own.row + 1 < arrays.npix && own.column + 1 < arrays.npix) {
        const T center = arrays.seen[own.at];
        rows += climb.factor * (arrays.seen[own.at + arrays.npix] - center);
        columns += climb.factor * (arrays.seen[own.at + 1] - center);
      }
      const T cut = cut_of(rows * rows + columns * columns);
      raise(0, own.at, ahead_rows, rows * cut, climb.turn);
      raise(1, own.at, ahead_columns, columns * cut, climb.turn);
    });
  }

  MPOL_DEVICE void raise_channels(const Raise& raise, Place place, std::int64_t image) const {
    const auto climb = CubeClimb<T>::of(arrays, channels_part, image);
    const int plane = arrays.plane[channels_part];
    const bool is_last = image % arrays.cut.nchan + 1 == arrays.cut.nchan;
    arrays.cut.each(place, [&](std::int64_t pixel) {
      const std::int64_t at = image * arrays.cut.pixels + pixel;
      const T ahead = raise.v(plane, at);
      T value = is_last ? ahead : ahead + climb.factor * (arrays.seen[at + arrays.cut.pixels] - arrays.seen[at]);
      value = value > T(1) ? T(1) : value < T(-1) ? T(-1) : value;
      raise(plane, at, ahead, value, climb.turn);
    });
  }

  MPOL_DEVICE void raise_spectra(const Raise& raise, Place place, std::int64_t image) const {
    const auto climb = CubeClimb<T>::of(arrays, spectra_part, image);
    const int plane = arrays.plane[spectra_part];
    const std::int64_t cuts = arrays.problem_of(image) * arrays.cut.pixels;
    arrays.cut.each(place, [&](std::int64_t pixel) {
      const std::int64_t at = image * arrays.cut.pixels + pixel;
      const T ahead = raise.v(plane, at);
      raise(plane, at, ahead, (ahead + climb.factor * arrays.seen[at]) * arrays.cuts[cuts + pixel], climb.turn);
    });
  }

  MPOL_DEVICE void raise_curvature(const Raise& raise, Place place, std::int64_t image) const {
    const auto climb = CubeClimb<T>::of(arrays, curvature_part, image);
    const int plane = arrays.plane[curvature_part];
    const std::int64_t row = arrays.npix;
    arrays.cut.each(place, [&](std::int64_t pixel) {
      const auto own = CubePixel::of(arrays, image, pixel);
      const T ahead[3] = {raise.v(plane, own.at), raise.v(plane + 1, own.at), raise.v(plane + 2, own.at)};
      T value[3] = {ahead[0], ahead[1], ahead[2]};
      if (own.row > 0 && own.column > 0 && own.row + 1 < arrays.npix && own.column + 1 < arrays.npix) {
        const auto& seen = arrays.seen;
        const T center = seen[own.at], right = seen[own.at + 1], above = seen[own.at + row];
        value[0] += climb.factor * (above - T(2) * center + seen[own.at - row]);
        value[1] += climb.factor * (right - T(2) * center + seen[own.at - 1]);
        value[2] += climb.factor * static_cast<T>(root_of_two) * (seen[own.at + row + 1] - above - right + center);
      }
      const T cut = cut_of(value[0] * value[0] + value[1] * value[1] + value[2] * value[2]);
      for (int i = 0; i < 3; ++i) raise(plane + i, own.at, ahead[i], value[i] * cut, climb.turn);
    });
  }
};

}  // namespace mpol::ops
