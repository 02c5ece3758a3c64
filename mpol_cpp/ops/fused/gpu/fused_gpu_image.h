#pragma once

// The kernels of a fused step over images; C++17.
#include <mpol_cpp/ops/fused/gpu/fused_gpu_arrays.h>
#include <mpol_cpp/ops/gpu/gpu_math.h>

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

MPOL_DEVICE bool is_pixel(std::int32_t row, std::int32_t column, std::int32_t npix) {
  return static_cast<std::uint32_t>(row) < static_cast<std::uint32_t>(npix) &&
         static_cast<std::uint32_t>(column) < static_cast<std::uint32_t>(npix);
}

/// The index of a pixel in its image.
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
  std::int64_t blocks() const { return arrays.shape.problems * pieces(); }

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

/// The gradient of the regularizers of curvatures, added to that of the likelihood.
template <typename T, typename Tile>
struct CurveBody {
  static constexpr int threads = Tile::threads, phases = 5, sum_count = image_sums - finish_sums;
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
  std::int64_t blocks() const { return piece_count(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local& local) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    if constexpr (phase == 0) load_image(place, tile, shared);
    if constexpr (phase == 1) {
      find_slopes(place, tile, shared, local);
      shared.sums.put(place.thread, local.sums);
    }
    if constexpr (phase == 2) add_gradient(place, tile, shared);
    if constexpr (phase == 3) shared.sums.gather(place.thread);
    if constexpr (phase == 4) {
      for (int q = place.thread; q < sum_count; q += threads)
        arrays.tile_sums[(finish_sums + q) * piece_count() + place.block] = shared.sums.total(q);
    }
  }

 private:
  using Math = gpu_math::ScalarMath<T>;

  MPOL_DEVICE void load_image(Place place, TilePlace tile, Shared& shared) const {
    const std::int32_t npix = arrays.shape.npix;
    const auto image = arrays.of_image(arrays.image, tile.image);
    for (int k = place.thread; k < image_distance * (Tile::height + 4); k += threads) {
      const std::int32_t row = tile.row + k / image_distance - 2, column = tile.column + k % image_distance - 2;
      shared.image[k] = is_pixel(row, column, npix) ? image[pixel_index(row, column, npix)] : T(0);
    }
  }

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
      gradient[pixel_index(row, column, npix)] += rows + columns + mixed;
    }
  }
};

/// Gradient of every term with respect to the image, Hann adjoint, derivative of softplus and update.
/// @tparam Joining  Kinds of the regularizers that join channels, of those that are there: without them a kernel needs fewer
/// registers
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
      for (int q = place.thread; q < sum_count; q += threads)
        arrays.tile_sums[q * piece_count() + place.block] = shared.sums.total(q);
    }
  }

 private:
  using Driver = regularizers::Driver;
  using Math = gpu_math::ScalarMath<T>;
  using Channels = regularizers::KindsOf<Driver::channels, Joining>;
  using Spectra = regularizers::KindsOf<Driver::spectra, Joining>;

  /// What is worked out at a pixel, with the weights of one problem.
  struct PixelFormulas {
    DeviceFormulas<T, Driver::pixels> pixels;
    regularizers::Formulas<T, Channels> channels;
    regularizers::Formulas<T, Spectra> spectra;
    DeviceFormulas<T, Driver::edges> edges;

    MPOL_DEVICE explicit PixelFormulas(const DeviceTerms<T>& terms)
        : pixels(terms), channels(terms), spectra(terms), edges(terms) {}
  };
  /// A pixel in all channels.
  struct Spectrum {
    const GpuArrays<T>& arrays;
    std::int64_t position;
    std::int32_t channel;
    T own;

    MPOL_DEVICE bool has(int offset) const { return channel + offset >= 0 && channel + offset < arrays.shape.nchan; }
    MPOL_DEVICE T at(int offset) const {
      return offset == 0 ? own : arrays.image[position + offset * std::int64_t{arrays.shape.pixels()}];
    }
  };
  /// A pixel whose gradient is wanted.
  struct Pixel {
    std::int32_t image, row, column;
    int at, slope;  // in the tile
    bool counts;
  };

  MPOL_DEVICE std::int64_t piece_count() const { return arrays.shape.images() * arrays.template tiles<Tile>(); }

  MPOL_DEVICE std::int64_t problem_of(std::int64_t image) const { return image / arrays.shape.nchan; }

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
    const PixelFormulas formulas(DeviceTerms<T>{arrays, problem_of(tile.image)});
    for (int k = place.thread; k < gradient_distance * (Tile::height + 2); k += threads) {
      const int y = k / gradient_distance, x = k % gradient_distance;
      const Pixel pixel{tile.image,
                        tile.row + y - 1,
                        tile.column + x - 1,
                        (y + 1) * image_distance + x + 1,
                        (y + 1) * slope_distance + x + 1,
                        y > 0 && y <= Tile::height && x > 0 && x <= Tile::width};
      shared.gradient[k] = is_pixel(pixel.row, pixel.column, npix) ? gradient_at(pixel, formulas, shared, local) : T(0);
    }
  }

  MPOL_DEVICE T gradient_at(const Pixel& pixel, const PixelFormulas& formulas, Shared& shared, Local& local) const {
    const auto has = [this](TermKind kind) { return arrays.has(kind); };
    const auto add = [&](auto kind, T value) {
      if (pixel.counts) local.sums[image_sum_of(decltype(kind)::value)] += static_cast<double>(value);
    };
    // A kernel of one joining regularizer is taken where it is there.
    const auto has_joining = [this](TermKind kind) { return Joining::count == 1 || arrays.has(kind); };
    const T x = shared.image[pixel.at];
    T slope = arrays.likelihood[position(pixel)] + formulas.pixels.template slope_where<Math>(has, add, x);
    if (arrays.template uses<Driver::differences>()) slope += difference_slope(pixel, shared);
    if constexpr (Channels::count > 0) {
      const Spectrum spectrum{arrays, position(pixel), pixel.image % arrays.shape.nchan, x};
      slope += formulas.channels.template slope_where<Math>(has_joining, add, spectrum);
    }
    if constexpr (Spectra::count > 0) {
      if (regularizers::has_any(Spectra{}, has_joining)) slope += spectrum_slope(pixel, formulas, x, has_joining, add);
    }
    if (const int edges = edges_at(pixel); edges > 0) {
      const T count = static_cast<T>(edges);  // corners belong to two
      const auto add_each = [&](auto kind, T value) { add(kind, count * value); };
      slope += count * formulas.edges.template slope_where<Math>(has, add_each, x);
    }
    return slope;
  }

  /// The slope of the regularizers of spectra, whose values the first channel adds.
  template <typename Has, typename Add>
  MPOL_DEVICE T spectrum_slope(const Pixel& pixel, const PixelFormulas& formulas, T x, const Has& has, const Add& add) const {
    const std::int32_t channel = pixel.image % arrays.shape.nchan;
    const auto add_once = [&](auto kind, T value) {
      if (channel == 0) add(kind, value);
    };
    const auto squares = arrays.of_image(arrays.squares, problem_of(pixel.image));
    return formulas.spectra.template slope_where<Math>(has, add_once, x,
                                                       squares[pixel_index(pixel.row, pixel.column, arrays.shape.npix)]);
  }

  MPOL_DEVICE int edges_at(const Pixel& pixel) const {
    const std::int32_t last = arrays.shape.npix - 1;
    if (!arrays.template uses<Driver::edges>()) return 0;
    return (pixel.row == 0 || pixel.row == last ? 1 : 0) + (pixel.column == 0 || pixel.column == last ? 1 : 0);
  }

  MPOL_DEVICE std::int64_t position(const Pixel& pixel) const {
    return pixel.image * std::int64_t{arrays.shape.pixels()} + pixel_index(pixel.row, pixel.column, arrays.shape.npix);
  }

  /// Finds the slopes of each pixel once; they are 0 where a forward difference is missing.
  MPOL_DEVICE void find_slopes(Place place, Shared& shared, Local& local) const {
    for (double& sum : local.sums) sum = 0;
    if (!arrays.template uses<Driver::differences>()) return;
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int32_t npix = arrays.shape.npix;
    const DeviceFormulas<T, Driver::differences> formulas(DeviceTerms<T>{arrays, problem_of(tile.image)});
    const auto has = [this](TermKind kind) { return arrays.has(kind); };
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
      const T slope = formulas.template slope_where<Math>(has, add, dl * dl + dm * dm);
      shared.slopes.along[k] = dl * slope;
      shared.slopes.across[k] = dm * slope;
    }
  }

  MPOL_DEVICE static T difference_slope(const Pixel& pixel, Shared& shared) {
    auto& [along, across] = shared.slopes;
    const int own = pixel.slope, below = pixel.slope - slope_distance;
    return (along[own - 1] - along[own]) + (across[below] - across[own]);
  }

  MPOL_DEVICE void update_pixels(Place place, Shared& shared, Local& local) const {
    const auto tile = TilePlace::of<Tile>(arrays, place.block);
    const std::int32_t npix = arrays.shape.npix, problem = tile.image / arrays.shape.nchan;
    const std::int64_t begin = tile.image * std::int64_t{arrays.shape.pixels()};
    for (int k = place.thread; k < Tile::width * Tile::height; k += threads) {
      const int y = k / Tile::width, x = k % Tile::width;
      const std::int32_t row = tile.row + y, column = tile.column + x;
      if (!is_pixel(row, column, npix)) continue;
      const T slope = gpu_math::hann<T>(shared.gradient, (y + 1) * gradient_distance + x + 1, gradient_distance);
      local.sums[parameters_sum] += static_cast<double>(update(begin + pixel_index(row, column, npix), slope, problem));
    }
  }

  /// @return the base pixel afterwards
  MPOL_DEVICE T update(std::int64_t at, T slope, std::int64_t problem) const {
    const auto& constants = arrays.constants;
    const T base = arrays.base[at], gradient = slope * gpu_math::softplus_derivative(base);
    if (constants.update == FusedUpdate::none) {
      arrays.gradient[at] = gradient;
      return base;
    }
    if (arrays.stopped[problem] != 0) return base;
    const T updated =
        constants.update == FusedUpdate::adam ? base - adam_step(at, gradient, problem) : base - sgd_step(at, gradient, problem);
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
    return rate * first / (gpu_math::square_root(second) * scale + static_cast<T>(constants.epsilon)) + (second - second);
  }
};

}  // namespace mpol::ops
