#pragma once

// The kernels of a fused step over tiles of images; C++17.
#include <mpol_cpp/ops/fused/gpu/fused_gpu_pixels.h>

namespace mpol::ops {

/// The tile of an image that a block works on.
struct TilePlace {
  std::int32_t image, row, column;  // of the first pixel

  template <typename Tile, typename T>
  MPOL_DEVICE static TilePlace of(const GpuArrays<T>& arrays, std::int64_t block) {
    const std::uint32_t tiles = arrays.template tiles<Tile>(), along = arrays.template tiles_along<Tile>();
    const std::uint32_t image = static_cast<std::uint32_t>(block) / tiles,
                        tile = static_cast<std::uint32_t>(block) - image * tiles;
    const std::uint32_t row = tile / along;
    return {static_cast<std::int32_t>(image), static_cast<std::int32_t>(row * Tile::height),
            static_cast<std::int32_t>((tile - row * along) * Tile::width)};
  }
};

/// image = Hann(softplus(base))
template <typename T, typename Tile>
struct MapBody {
  static constexpr int threads = Tile::threads, phases = 2, distance = Tile::width + 2;
  struct Shared {
    SharedArray<T, distance*(Tile::height + 2)> mapped;
  };
  struct Local {};

  GpuArrays<T> arrays;

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
        shared.mapped[k] = inside ? gpu_math::softplus(base[pixel_index(row, column, npix)]) : T(0);
      }
    } else {
      const auto image = arrays.of_image(arrays.image, tile.image);
      for (int k = place.thread; k < Tile::width * Tile::height; k += threads) {
        const int y = k / Tile::width, x = k % Tile::width;
        const std::int32_t row = tile.row + y, column = tile.column + x;
        if (!is_pixel(row, column, npix)) continue;
        image[pixel_index(row, column, npix)] = gpu_math::hann<T>(shared.mapped, (y + 1) * distance + x + 1, distance);
      }
    }
  }
};

/// squares = sum over channels of image^2, for regularizers of spectra.
template <typename T, typename Tile>
struct SquareBody {
  static constexpr int threads = Tile::threads, phases = 1;
  struct Shared {};
  struct Local {};

  GpuArrays<T> arrays;

  MPOL_DEVICE std::int64_t pieces() const { return (arrays.shape.pixels() + Tile::places - 1) / Tile::places; }
  MPOL_DEVICE std::int64_t blocks() const { return arrays.shape.problems * pieces(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const std::int64_t problem = place.block / pieces(), nchan = arrays.shape.nchan;
    const std::uint32_t begin = static_cast<std::uint32_t>(place.block - problem * pieces()) * Tile::places;
    const auto squares = arrays.of_image(arrays.squares, problem);
    for (std::uint32_t k = static_cast<std::uint32_t>(place.thread); k < Tile::places; k += threads) {
      const std::uint32_t at = begin + k;
      if (at >= arrays.shape.pixels()) return;
      T sum = T(0);
      for (std::int64_t channel = 0; channel < nchan; ++channel) {
        const T x = arrays.image[(problem * nchan + channel) * arrays.shape.pixels() + at];
        sum += x * x;
      }
      squares[at] = sum;
    }
  }
};

/// The image on a tile and two pixels more each way, 0 beyond its edges.
template <typename Tile, typename T, typename Shared>
MPOL_DEVICE void load_around(const GpuArrays<T>& arrays, const Place& place, const TilePlace& tile, Shared& to) {
  constexpr int distance = Tile::width + 4;
  const std::int32_t npix = arrays.shape.npix;
  const auto image = arrays.of_image(arrays.image, tile.image);
  for (int k = place.thread; k < distance * (Tile::height + 4); k += Tile::threads) {
    const std::int32_t row = tile.row + k / distance - 2, column = tile.column + k % distance - 2;
    to[k] = is_pixel(row, column, npix) ? image[pixel_index(row, column, npix)] : T(0);
  }
}

/// The gradient of the regularizers of curvatures, added to that of the likelihood where images are cut into tiles.
template <typename T, typename Tile>
struct CurveBody {
  static constexpr int threads = Tile::threads, phases = 5, sum_count = curvature_sums;
  static constexpr int image_distance = Tile::width + 4, slope_distance = Tile::width + 2;
  struct Shared {
    SharedArray<T, image_distance*(Tile::height + 4)> image;                 // two more pixels each way
    SharedArray<T, slope_distance*(Tile::height + 2)> rows, columns, mixed;  // one more: derivatives by second differences
    BlockSums<sum_count, threads> sums;
  };
  struct Local {
    double sums[sum_count];
  };

  GpuArrays<T> arrays;

  MPOL_DEVICE std::int64_t piece_count() const { return arrays.shape.images() * arrays.template tiles<Tile>(); }
  MPOL_DEVICE std::int64_t blocks() const { return piece_count(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    if constexpr (phase == 0) load_around<Tile>(arrays, place, tile, shared.image);
    if constexpr (phase == 1) {
      find_slopes(place, tile, shared, local);
      shared.sums.put(place.thread, local.sums);
    }
    if constexpr (phase == 2) add_gradient(place, tile, shared);
    if constexpr (phase == 3) shared.sums.gather(place.thread);
    if constexpr (phase == 4) {
      for (int q = place.thread; q < sum_count; q += threads)
        arrays.curve_sums[q * piece_count() + place.block] = shared.sums.total(q);
    }
  }

 private:
  using Math = gpu_math::ScalarMath<T>;

  MPOL_DEVICE void find_slopes(Place place, TilePlace tile, Shared& shared, Local& local) const {
    for (double& sum : local.sums) sum = 0;
    const std::int32_t npix = arrays.shape.npix;
    const DeviceFormulas<T, regularizers::Driver::curvatures> formulas(DeviceTerms<T>{arrays, tile.image / arrays.shape.nchan});
    const auto has = [this](TermKind kind) { return arrays.has(kind); };
    for (int k = place.thread; k < slope_distance * (Tile::height + 2); k += threads) {
      const int y = k / slope_distance, x = k % slope_distance, at = (y + 1) * image_distance + x + 1;
      const std::int32_t row = tile.row + y - 1, column = tile.column + x - 1;
      shared.rows[k] = shared.columns[k] = shared.mixed[k] = T(0);
      if (row < 1 || column < 1 || row + 1 >= npix || column + 1 >= npix) continue;
      const T center = shared.image[at], right = shared.image[at + 1], up = shared.image[at + image_distance];
      const T a = up - T(2) * center + shared.image[at - image_distance], b = right - T(2) * center + shared.image[at - 1];
      const T c = shared.image[at + image_distance + 1] - up - right + center;
      const bool counts = y > 0 && y <= Tile::height && x > 0 && x <= Tile::width;
      const auto add = [&](auto kind, T value) {
        if (counts) local.sums[image_sum_of(decltype(kind)::value) - finish_sums] += static_cast<double>(value);
      };
      const T slope = formulas.template slope_where<Math>(has, add, a * a + b * b + T(2) * c * c);
      shared.rows[k] = a * slope;
      shared.columns[k] = b * slope;
      shared.mixed[k] = T(2) * c * slope;
    }
  }

  MPOL_DEVICE void add_gradient(Place place, TilePlace tile, Shared& shared) const {
    const std::int32_t npix = arrays.shape.npix;
    const auto gradient = arrays.of_image(arrays.likelihood, tile.image);
    for (int k = place.thread; k < Tile::width * Tile::height; k += threads) {
      const std::int32_t row = tile.row + k / Tile::width, column = tile.column + k % Tile::width;
      if (!is_pixel(row, column, npix)) continue;
      const int own = (k / Tile::width + 1) * slope_distance + k % Tile::width + 1, below = own - slope_distance;
      const T rows = shared.rows[below] - T(2) * shared.rows[own] + shared.rows[own + slope_distance];
      const T columns = shared.columns[own - 1] - T(2) * shared.columns[own] + shared.columns[own + 1];
      const T mixed = shared.mixed[below - 1] - shared.mixed[below] - shared.mixed[own - 1] + shared.mixed[own];
      T& slope = gradient[pixel_index(row, column, npix)];
      slope = (arrays.curves_alone ? T(0) : slope) + (rows + columns + mixed);
    }
  }
};

/// Gradient of every term with respect to the image, Hann adjoint, derivative of softplus and update.
/// @tparam Joining  as PixelTerms has them
template <typename T, typename Tile, typename Joining>
struct FinishBody {
  /// Blocks that a processor holds at least: for more the compiler would spill registers.
  static constexpr int least_blocks = Joining::count > 1 ? 3 : 4;
  static constexpr int threads = Tile::threads, phases = 6, sum_count = Joining::count == 0 ? parameters_sum + 1 : finish_sums;
  static constexpr int image_distance = Tile::width + 4, gradient_distance = Tile::width + 2, slope_distance = Tile::width + 3;
  /// Derivatives of the regularizers of differences by these; one pixel more at the left and below.
  struct Slopes {
    SharedArray<T, slope_distance*(Tile::height + 3)> along, across;
  };
  struct Shared {
    SharedArray<T, image_distance*(Tile::height + 4)> image;  // two more pixels each way
    SharedArray<T, gradient_distance*(Tile::height + 2)> gradient;
    union {  // the slopes are done with when sums are put
      Slopes slopes;
      BlockSums<sum_count, threads> sums;
    };
  };
  struct Local {
    double sums[sum_count];
  };

  GpuArrays<T> arrays;

  std::int64_t blocks() const { return piece_count(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    if constexpr (phase == 0) load_around<Tile>(arrays, place, tile, shared.image);
    if constexpr (phase == 1) find_slopes(place, tile, shared, local);
    if constexpr (phase == 2) find_gradient(place, tile, shared, local);
    if constexpr (phase == 3) {
      update_pixels(place, tile, shared, local);
      shared.sums.put(place.thread, local.sums);
    }
    if constexpr (phase == 4) shared.sums.gather(place.thread);
    if constexpr (phase == 5) {
      for (int q = place.thread; q < sum_count; q += threads)
        arrays.pixel_sums[q * piece_count() + place.block] = shared.sums.total(q);
    }
  }

 private:
  MPOL_DEVICE std::int64_t piece_count() const { return arrays.shape.images() * arrays.template tiles<Tile>(); }

  /// Finds the slopes of each pixel once; they are 0 where a forward difference is missing.
  MPOL_DEVICE void find_slopes(Place place, TilePlace tile, Shared& shared, Local& local) const {
    for (double& sum : local.sums) sum = 0;
    const PixelTerms<T, Joining> terms(arrays, tile.image);
    if (!terms.has_differences()) return;
    const std::int32_t npix = arrays.shape.npix;
    for (int k = place.thread; k < slope_distance * (Tile::height + 3); k += threads) {
      const int y = k / slope_distance, x = k % slope_distance, at = y * image_distance + x;
      const std::int32_t row = tile.row + y - 2, column = tile.column + x - 2;
      shared.slopes.along[k] = shared.slopes.across[k] = T(0);
      if (row < 0 || column < 0 || row + 1 >= npix || column + 1 >= npix) continue;
      const T center = shared.image[at], dl = shared.image[at + 1] - center, dm = shared.image[at + image_distance] - center;
      const bool counts = y > 1 && y < Tile::height + 2 && x > 1 && x < Tile::width + 2;
      const auto add = [&](auto kind, T value) {
        if (counts) local.sums[image_sum_of(decltype(kind)::value)] += static_cast<double>(value);
      };
      const T slope = terms.difference_slope(dl * dl + dm * dm, add);
      shared.slopes.along[k] = dl * slope;
      shared.slopes.across[k] = dm * slope;
    }
  }

  MPOL_DEVICE void find_gradient(Place place, TilePlace tile, Shared& shared, Local& local) const {
    const std::int32_t npix = arrays.shape.npix;
    const PixelTerms<T, Joining> terms(arrays, tile.image);
    const auto likelihood = arrays.of_image(arrays.likelihood, tile.image);
    auto& [along, across] = shared.slopes;
    for (int k = place.thread; k < gradient_distance * (Tile::height + 2); k += threads) {
      const int y = k / gradient_distance, x = k % gradient_distance;
      const std::int32_t row = tile.row + y - 1, column = tile.column + x - 1;
      shared.gradient[k] = T(0);
      if (!is_pixel(row, column, npix)) continue;
      const bool counts = y > 0 && y <= Tile::height && x > 0 && x <= Tile::width;
      const auto add = [&](auto kind, T value) {
        if (counts) local.sums[image_sum_of(decltype(kind)::value)] += static_cast<double>(value);
      };
      T slope = likelihood[pixel_index(row, column, npix)] +
                terms.slope(row, column, shared.image[(y + 1) * image_distance + x + 1], add);
      const int own = (y + 1) * slope_distance + x + 1, below = own - slope_distance;
      if (terms.has_differences()) slope += (along[own - 1] - along[own]) + (across[below] - across[own]);
      shared.gradient[k] = slope;
    }
  }

  MPOL_DEVICE void update_pixels(Place place, TilePlace tile, Shared& shared, Local& local) const {
    const std::int32_t npix = arrays.shape.npix;
    const PixelUpdate<T> update(arrays, tile.image / arrays.shape.nchan);
    const std::int64_t begin = tile.image * std::int64_t{arrays.shape.pixels()};
    for (int k = place.thread; k < Tile::width * Tile::height; k += threads) {
      const int y = k / Tile::width, x = k % Tile::width;
      const std::int32_t row = tile.row + y, column = tile.column + x;
      if (!is_pixel(row, column, npix)) continue;
      const T slope = gpu_math::hann<T>(shared.gradient, (y + 1) * gradient_distance + x + 1, gradient_distance);
      local.sums[parameters_sum] += static_cast<double>(update(begin + pixel_index(row, column, npix), slope));
    }
  }
};

}  // namespace mpol::ops
