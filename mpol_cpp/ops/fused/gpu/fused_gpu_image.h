#pragma once

// The kernels of a fused step over images; C++17.
#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>
#include <mpol_cpp/ops/gpu/gpu_math.h>

namespace mpol::ops {

/// The tile of an image that a block works on.
struct TilePlace {
  std::int64_t image, row, column;  // of the first pixel

  template <typename Tile, typename T>
  MPOL_DEVICE static TilePlace of(const DeviceArrays<T>& arrays, std::int64_t block) {
    const std::int64_t tiles = arrays.template tiles<Tile>(), along = arrays.template tiles_along<Tile>();
    return {block / tiles, block % tiles / along * Tile::height, block % along * Tile::width};
  }
};

MPOL_DEVICE bool is_pixel(std::int64_t row, std::int64_t column, std::int64_t npix) {
  return row >= 0 && row < npix && column >= 0 && column < npix;
}

/// image = Hann(softplus(base))
template <typename T, typename Tile>
struct MapBody {
  static constexpr int threads = Tile::threads, phases = 2, distance = Tile::width + 2;
  struct Shared {
    SharedArray<T, distance*(Tile::height + 2)> mapped;
  };
  struct Local {};

  DeviceArrays<T> arrays;

  std::int64_t blocks() const { return arrays.shape.images() * arrays.template tiles<Tile>(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int64_t npix = arrays.shape.npix, offset = tile.image * npix * npix;
    if constexpr (phase == 0) {
      for (int k = place.thread; k < distance * (Tile::height + 2); k += threads) {
        const std::int64_t row = tile.row + k / distance - 1, column = tile.column + k % distance - 1;
        const bool inside = is_pixel(row, column, npix);
        shared.mapped[k] = inside ? device_math::softplus(arrays.base[offset + row * npix + column]) : T(0);
      }
    } else {
      for (int k = place.thread; k < Tile::width * Tile::height; k += threads) {
        const int y = k / Tile::width, x = k % Tile::width;
        const std::int64_t row = tile.row + y, column = tile.column + x;
        if (!is_pixel(row, column, npix)) continue;
        arrays.image[offset + row * npix + column] = device_math::hann<T>(shared.mapped, (y + 1) * distance + x + 1, distance);
      }
    }
  }
};

/// Gradient of every term with respect to the image, Hann adjoint, derivative of softplus and update.
template <typename T, typename Tile>
struct FinishBody {
  static constexpr int threads = Tile::threads, phases = 5;
  static constexpr int image_distance = Tile::width + 4, gradient_distance = Tile::width + 2;
  struct Shared {
    SharedArray<T, image_distance*(Tile::height + 4)> image;  // two more pixels each way
    SharedArray<T, gradient_distance*(Tile::height + 2)> gradient;
    BlockSums<image_sums, threads> sums;
  };
  struct Local {
    double sums[image_sums];
  };

  DeviceArrays<T> arrays;

  std::int64_t blocks() const { return arrays.shape.images() * arrays.template tiles<Tile>(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    if constexpr (phase == 0) load_image(place, shared);
    if constexpr (phase == 1) find_gradient(place, shared, local);
    if constexpr (phase == 2) {
      update_pixels(place, shared, local);
      shared.sums.put(place.thread, local.sums);
    }
    if constexpr (phase == 3) shared.sums.gather(place.thread);
    if constexpr (phase == 4) {
      for (int q = place.thread; q < image_sums; q += threads)
        arrays.of_images[q * piece_count() + place.block] = shared.sums.total(q);
    }
  }

 private:
  /// Weights of the terms of one problem, in the images' precision.
  struct Weights {
    T sparsity, tv_image, twice_tsv, entropy, tv_channel, twice_edge_clamp;
  };
  /// A pixel whose gradient is wanted.
  struct Pixel {
    std::int64_t image, row, column;
    int at;  // in the tile
    bool counts;
  };

  MPOL_DEVICE std::int64_t piece_count() const { return arrays.shape.images() * arrays.template tiles<Tile>(); }

  MPOL_DEVICE Weights weights_of(std::int64_t problem) const {
    const auto weight = [&](DeviceTerm term) { return arrays.weight_of(term, problem); };
    return {
        static_cast<T>(weight(DeviceTerm::sparsity)),   static_cast<T>(weight(DeviceTerm::tv_image)),
        static_cast<T>(2.0 * weight(DeviceTerm::tsv)),  static_cast<T>(weight(DeviceTerm::entropy) / arrays.constants.total_flux),
        static_cast<T>(weight(DeviceTerm::tv_channel)), static_cast<T>(2.0 * weight(DeviceTerm::edge_clamp))};
  }

  MPOL_DEVICE void load_image(Place place, Shared& shared) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int64_t npix = arrays.shape.npix, offset = tile.image * npix * npix;
    for (int k = place.thread; k < image_distance * (Tile::height + 4); k += threads) {
      const std::int64_t row = tile.row + k / image_distance - 2, column = tile.column + k % image_distance - 2;
      shared.image[k] = is_pixel(row, column, npix) ? arrays.image[offset + row * npix + column] : T(0);
    }
  }

  MPOL_DEVICE void find_gradient(Place place, Shared& shared, Local& local) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int64_t npix = arrays.shape.npix;
    const Weights weights = weights_of(tile.image / arrays.shape.nchan);
    for (double& sum : local.sums) sum = 0;
    for (int k = place.thread; k < gradient_distance * (Tile::height + 2); k += threads) {
      const int y = k / gradient_distance, x = k % gradient_distance;
      const Pixel pixel{tile.image, tile.row + y - 1, tile.column + x - 1, (y + 1) * image_distance + x + 1,
                        y > 0 && y <= Tile::height && x > 0 && x <= Tile::width};
      shared.gradient[k] = is_pixel(pixel.row, pixel.column, npix) ? gradient_at(pixel, weights, shared, local) : T(0);
    }
  }

  MPOL_DEVICE T gradient_at(const Pixel& pixel, const Weights& weights, Shared& shared, Local& local) const {
    T slope = arrays.likelihood[position(pixel)];
    if (arrays.has(DeviceTerm::sparsity) || arrays.has(DeviceTerm::entropy)) slope += pixel_slope(pixel, weights, shared, local);
    if (arrays.has(DeviceTerm::tv_image) || arrays.has(DeviceTerm::tsv)) slope += variation_slope(pixel, weights, shared, local);
    if (arrays.has(DeviceTerm::tv_channel)) slope += channel_slope(pixel, weights, shared, local);
    if (arrays.has(DeviceTerm::edge_clamp)) slope += edge_slope(pixel, weights, shared, local);
    return slope;
  }

  MPOL_DEVICE std::int64_t position(const Pixel& pixel) const {
    return (pixel.image * arrays.shape.npix + pixel.row) * arrays.shape.npix + pixel.column;
  }

  MPOL_DEVICE static void add(const Pixel& pixel, Local& local, DeviceTerm term, T value) {
    if (pixel.counts) local.sums[static_cast<int>(term)] += static_cast<double>(value);
  }

  MPOL_DEVICE T pixel_slope(const Pixel& pixel, const Weights& weights, Shared& shared, Local& local) const {
    const T x = shared.image[pixel.at];
    add(pixel, local, DeviceTerm::sparsity, device_math::magnitude(x));
    T slope = x > T(0) ? weights.sparsity : (x < T(0) ? -weights.sparsity : T(0));
    if (arrays.has(DeviceTerm::entropy)) {
      const T floor = static_cast<T>(arrays.constants.entropy_floor), prior = static_cast<T>(arrays.constants.prior_intensity);
      const T information = device_math::logarithm((x < floor ? floor : x) / prior);
      add(pixel, local, DeviceTerm::entropy, x * information);
      slope += weights.entropy * (information + T(1));
    }
    return slope;
  }

  /// Forward differences of the pixel at (row, column) and the derivative of their terms by them, 0 at the last ones.
  struct Differences {
    T along, across, smoothed, squares;
    bool exist;
  };
  MPOL_DEVICE Differences differences(std::int64_t row, std::int64_t column, int at, const Weights& weights,
                                      Shared& shared) const {
    const std::int64_t npix = arrays.shape.npix;
    Differences result{T(0), T(0), T(0), T(0), row >= 0 && column >= 0 && row + 1 < npix && column + 1 < npix};
    if (!result.exist) return result;
    const T centre = shared.image[at], dl = shared.image[at + 1] - centre, dm = shared.image[at + image_distance] - centre;
    result.squares = dl * dl + dm * dm;
    T slope = weights.twice_tsv;
    if (arrays.has(DeviceTerm::tv_image)) {
      result.smoothed = device_math::square_root(result.squares + static_cast<T>(arrays.constants.tv_image_epsilon));
      slope += weights.tv_image / result.smoothed;
    }
    result.along = dl * slope;
    result.across = dm * slope;
    return result;
  }

  MPOL_DEVICE T variation_slope(const Pixel& pixel, const Weights& weights, Shared& shared, Local& local) const {
    const auto own = differences(pixel.row, pixel.column, pixel.at, weights, shared);
    const auto before = differences(pixel.row, pixel.column - 1, pixel.at - 1, weights, shared);
    const auto below = differences(pixel.row - 1, pixel.column, pixel.at - image_distance, weights, shared);
    add(pixel, local, DeviceTerm::tv_image, own.smoothed);
    add(pixel, local, DeviceTerm::tsv, own.squares);
    return (before.along - own.along) + (below.across - own.across);
  }

  MPOL_DEVICE T channel_slope(const Pixel& pixel, const Weights& weights, Shared& shared, Local& local) const {
    const std::int64_t channel = pixel.image % arrays.shape.nchan, at = position(pixel), pixels = arrays.shape.pixels();
    const T epsilon = static_cast<T>(arrays.constants.tv_channel_epsilon), x = shared.image[pixel.at];
    T slope = T(0);
    if (channel > 0) {
      const T step = x - arrays.image[at - pixels];
      slope += step / device_math::square_root(step * step + epsilon);
    }
    if (channel + 1 < arrays.shape.nchan) {
      const T step = arrays.image[at + pixels] - x, smoothed = device_math::square_root(step * step + epsilon);
      slope -= step / smoothed;
      add(pixel, local, DeviceTerm::tv_channel, smoothed);
    }
    return weights.tv_channel * slope;
  }

  /// Corners belong to two edges.
  MPOL_DEVICE T edge_slope(const Pixel& pixel, const Weights& weights, Shared& shared, Local& local) const {
    const std::int64_t last = arrays.shape.npix - 1;
    const int edges = (pixel.row == 0 || pixel.row == last ? 1 : 0) + (pixel.column == 0 || pixel.column == last ? 1 : 0);
    const T x = shared.image[pixel.at], count = static_cast<T>(edges);
    add(pixel, local, DeviceTerm::edge_clamp, count * x * x);
    return count * weights.twice_edge_clamp * x;
  }

  MPOL_DEVICE void update_pixels(Place place, Shared& shared, Local& local) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int64_t npix = arrays.shape.npix, problem = tile.image / arrays.shape.nchan;
    for (int k = place.thread; k < Tile::width * Tile::height; k += threads) {
      const int y = k / Tile::width, x = k % Tile::width;
      const std::int64_t row = tile.row + y, column = tile.column + x;
      if (!is_pixel(row, column, npix)) continue;
      const T slope = device_math::hann<T>(shared.gradient, (y + 1) * gradient_distance + x + 1, gradient_distance);
      local.sums[parameters_sum] += static_cast<double>(update((tile.image * npix + row) * npix + column, slope, problem));
    }
  }

  /// @return the base pixel afterwards
  MPOL_DEVICE T update(std::int64_t at, T slope, std::int64_t problem) const {
    const auto& constants = arrays.constants;
    const T base = arrays.base[at], gradient = slope * device_math::softplus_derivative(base);
    if (constants.update == DeviceUpdate::none) {
      arrays.gradient[at] = gradient;
      return base;
    }
    if (arrays.stopped[problem] != 0) return base;
    const T updated =
        constants.update == DeviceUpdate::adam ? base - adam_step(at, gradient, problem) : base - sgd_step(at, gradient, problem);
    arrays.base[at] = updated;
    return updated;
  }

  MPOL_DEVICE T sgd_step(std::int64_t at, T gradient, std::int64_t problem) const {
    const T rate = static_cast<T>(arrays.rate[problem]);
    if (arrays.constants.momentum == 0) return rate * gradient;
    const T first = static_cast<T>(arrays.constants.momentum) * arrays.first[at] + gradient;
    arrays.first[at] = first;
    return rate * first;
  }

  MPOL_DEVICE T adam_step(std::int64_t at, T gradient, std::int64_t problem) const {
    const auto& constants = arrays.constants;
    const T first = static_cast<T>(constants.beta1) * arrays.first[at] + static_cast<T>(1.0 - constants.beta1) * gradient;
    const T second =
        static_cast<T>(constants.beta2) * arrays.second[at] + static_cast<T>(1.0 - constants.beta2) * (gradient * gradient);
    arrays.first[at] = first;
    arrays.second[at] = second;
    const T rate = static_cast<T>(arrays.rate[problem] * arrays.bias[problem]);
    const T scale = static_cast<T>(arrays.bias[arrays.shape.problems + problem]);
    // A moment that has overflowed would hold the pixel where it is for ever: no number says so instead.
    return rate * first / (device_math::square_root(second) * scale + static_cast<T>(constants.epsilon)) + (second - second);
  }
};

}  // namespace mpol::ops
