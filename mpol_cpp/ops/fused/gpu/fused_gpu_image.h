#pragma once

// The kernels of a fused step over images; C++17.
#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>
#include <mpol_cpp/ops/gpu/gpu_math.h>

namespace mpol::ops {

/// The tile of an image that a block works on.
struct TilePlace {
  std::int32_t image, row, column;  // of the first pixel

  template <typename Tile, typename T>
  MPOL_DEVICE static TilePlace of(const DeviceArrays<T>& arrays, std::int64_t block) {
    const std::uint32_t tiles = arrays.template tiles<Tile>(), along = arrays.template tiles_along<Tile>();
    const std::uint32_t image = static_cast<std::uint32_t>(block) / tiles,
                        tile = static_cast<std::uint32_t>(block) - image * tiles;
    const std::uint32_t row = tile / along;
    return {static_cast<std::int32_t>(image), static_cast<std::int32_t>(row * Tile::height),
            static_cast<std::int32_t>((tile - row * along) * Tile::width)};
  }
};

MPOL_DEVICE bool is_pixel(std::int32_t row, std::int32_t column, std::int32_t npix) {
  return static_cast<std::uint32_t>(row) < static_cast<std::uint32_t>(npix) &&
         static_cast<std::uint32_t>(column) < static_cast<std::uint32_t>(npix);
}

/// Of a pixel in its image.
MPOL_DEVICE std::uint32_t pixel_index(std::int32_t row, std::int32_t column, std::int32_t npix) {
  return static_cast<std::uint32_t>(row) * static_cast<std::uint32_t>(npix) + static_cast<std::uint32_t>(column);
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
    const std::int32_t npix = arrays.shape.npix;
    if constexpr (phase == 0) {
      const auto base = arrays.of_image(arrays.base, tile.image);
      for (int k = place.thread; k < distance * (Tile::height + 2); k += threads) {
        const std::int32_t row = tile.row + k / distance - 1, column = tile.column + k % distance - 1;
        const bool inside = is_pixel(row, column, npix);
        shared.mapped[k] = inside ? device_math::softplus(base[pixel_index(row, column, npix)]) : T(0);
      }
    } else {
      const auto image = arrays.of_image(arrays.image, tile.image);
      for (int k = place.thread; k < Tile::width * Tile::height; k += threads) {
        const int y = k / Tile::width, x = k % Tile::width;
        const std::int32_t row = tile.row + y, column = tile.column + x;
        if (!is_pixel(row, column, npix)) continue;
        image[pixel_index(row, column, npix)] = device_math::hann<T>(shared.mapped, (y + 1) * distance + x + 1, distance);
      }
    }
  }
};

/// Gradient of every term with respect to the image, Hann adjoint, derivative of softplus and update.
template <typename T, typename Tile>
struct FinishBody {
  static constexpr int threads = Tile::threads, phases = 6;
  static constexpr int image_distance = Tile::width + 4, gradient_distance = Tile::width + 2, slope_distance = Tile::width + 3;
  /// Derivatives of the variations of pixels by their forward differences; one pixel more at the left and below.
  struct Slopes {
    SharedArray<T, slope_distance*(Tile::height + 3)> along, across;
  };
  struct Shared {
    SharedArray<T, image_distance*(Tile::height + 4)> image;  // two more pixels each way
    SharedArray<T, gradient_distance*(Tile::height + 2)> gradient;
    union {  // the slopes are done with when sums are put
      Slopes slopes;
      BlockSums<image_sums, threads> sums;
    };
  };
  struct Local {
    double sums[image_sums];
  };

  DeviceArrays<T> arrays;

  std::int64_t blocks() const { return arrays.shape.images() * arrays.template tiles<Tile>(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    if constexpr (phase == 0) load_image(place, shared);
    if constexpr (phase == 1) find_slopes(place, shared, local);
    if constexpr (phase == 2) find_gradient(place, shared, local);
    if constexpr (phase == 3) {
      update_pixels(place, shared, local);
      shared.sums.put(place.thread, local.sums);
    }
    if constexpr (phase == 4) shared.sums.gather(place.thread);
    if constexpr (phase == 5) {
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
    std::int32_t image, row, column;
    int at, slope;  // in the tile
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
    const std::int32_t npix = arrays.shape.npix;
    const auto image = arrays.of_image(arrays.image, tile.image);
    for (int k = place.thread; k < image_distance * (Tile::height + 4); k += threads) {
      const std::int32_t row = tile.row + k / image_distance - 2, column = tile.column + k % image_distance - 2;
      shared.image[k] = is_pixel(row, column, npix) ? image[pixel_index(row, column, npix)] : T(0);
    }
  }

  MPOL_DEVICE void find_gradient(Place place, Shared& shared, Local& local) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int32_t npix = arrays.shape.npix;
    const Weights weights = weights_of(tile.image / arrays.shape.nchan);
    for (int k = place.thread; k < gradient_distance * (Tile::height + 2); k += threads) {
      const int y = k / gradient_distance, x = k % gradient_distance;
      const Pixel pixel{tile.image,
                        tile.row + y - 1,
                        tile.column + x - 1,
                        (y + 1) * image_distance + x + 1,
                        (y + 1) * slope_distance + x + 1,
                        y > 0 && y <= Tile::height && x > 0 && x <= Tile::width};
      shared.gradient[k] = is_pixel(pixel.row, pixel.column, npix) ? gradient_at(pixel, weights, shared, local) : T(0);
    }
  }

  MPOL_DEVICE T gradient_at(const Pixel& pixel, const Weights& weights, Shared& shared, Local& local) const {
    T slope = arrays.likelihood[position(pixel)];
    if (arrays.has(DeviceTerm::sparsity) || arrays.has(DeviceTerm::entropy)) slope += pixel_slope(pixel, weights, shared, local);
    if (has_variation()) slope += variation_slope(pixel, shared);
    if (arrays.has(DeviceTerm::tv_channel)) slope += channel_slope(pixel, weights, shared, local);
    if (arrays.has(DeviceTerm::edge_clamp)) slope += edge_slope(pixel, weights, shared, local);
    return slope;
  }

  MPOL_DEVICE bool has_variation() const { return arrays.has(DeviceTerm::tv_image) || arrays.has(DeviceTerm::tsv); }

  MPOL_DEVICE std::int64_t position(const Pixel& pixel) const {
    return pixel.image * std::int64_t{arrays.shape.pixels()} + pixel_index(pixel.row, pixel.column, arrays.shape.npix);
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

  /// Of each pixel once, 0 where a forward difference is missing.
  MPOL_DEVICE void find_slopes(Place place, Shared& shared, Local& local) const {
    for (double& sum : local.sums) sum = 0;
    if (!has_variation()) return;
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int32_t npix = arrays.shape.npix;
    const Weights weights = weights_of(tile.image / arrays.shape.nchan);
    for (int k = place.thread; k < slope_distance * (Tile::height + 3); k += threads) {
      const int y = k / slope_distance, x = k % slope_distance, at = y * image_distance + x;
      const std::int32_t row = tile.row + y - 2, column = tile.column + x - 2;
      shared.slopes.along[k] = shared.slopes.across[k] = T(0);
      if (row < 0 || column < 0 || row + 1 >= npix || column + 1 >= npix) continue;
      const T centre = shared.image[at], dl = shared.image[at + 1] - centre, dm = shared.image[at + image_distance] - centre;
      const T squares = dl * dl + dm * dm;
      const bool counts = y > 1 && y < Tile::height + 2 && x > 1 && x < Tile::width + 2;
      T slope = weights.twice_tsv;
      if (arrays.has(DeviceTerm::tv_image)) {
        const T smoothed = device_math::square_root(squares + static_cast<T>(arrays.constants.tv_image_epsilon));
        slope += weights.tv_image / smoothed;
        if (counts) local.sums[static_cast<int>(DeviceTerm::tv_image)] += static_cast<double>(smoothed);
      }
      if (counts) local.sums[static_cast<int>(DeviceTerm::tsv)] += static_cast<double>(squares);
      shared.slopes.along[k] = dl * slope;
      shared.slopes.across[k] = dm * slope;
    }
  }

  MPOL_DEVICE static T variation_slope(const Pixel& pixel, Shared& shared) {
    auto& [along, across] = shared.slopes;
    const int own = pixel.slope, below = pixel.slope - slope_distance;
    return (along[own - 1] - along[own]) + (across[below] - across[own]);
  }

  MPOL_DEVICE T channel_slope(const Pixel& pixel, const Weights& weights, Shared& shared, Local& local) const {
    const std::int32_t channel = pixel.image % arrays.shape.nchan;
    const std::int64_t at = position(pixel), pixels = arrays.shape.pixels();
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
    const std::int32_t last = arrays.shape.npix - 1;
    const int edges = (pixel.row == 0 || pixel.row == last ? 1 : 0) + (pixel.column == 0 || pixel.column == last ? 1 : 0);
    const T x = shared.image[pixel.at], count = static_cast<T>(edges);
    add(pixel, local, DeviceTerm::edge_clamp, count * x * x);
    return count * weights.twice_edge_clamp * x;
  }

  MPOL_DEVICE void update_pixels(Place place, Shared& shared, Local& local) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int32_t npix = arrays.shape.npix, problem = tile.image / arrays.shape.nchan;
    const std::int64_t begin = tile.image * std::int64_t{arrays.shape.pixels()};
    for (int k = place.thread; k < Tile::width * Tile::height; k += threads) {
      const int y = k / Tile::width, x = k % Tile::width;
      const std::int32_t row = tile.row + y, column = tile.column + x;
      if (!is_pixel(row, column, npix)) continue;
      const T slope = device_math::hann<T>(shared.gradient, (y + 1) * gradient_distance + x + 1, gradient_distance);
      local.sums[parameters_sum] += static_cast<double>(update(begin + pixel_index(row, column, npix), slope, problem));
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
