#pragma once

// A fused step in three kernels, which transform rows and columns by themselves: rows of the image, columns with the data, rows
// of the gradient and their update; C++17. Two rows a and b of reals are transformed as one line a + i b.
#include <algorithm>

#include <mpol_cpp/ops/fused/gpu/fused_gpu_half_plane.h>
#include <mpol_cpp/ops/fused/gpu/fused_gpu_pixels.h>

namespace mpol::ops {

/// The rows of an image that a block works on.
struct RowsPlace {
  std::int32_t image, row;  // the first

  template <typename Rows, typename T>
  MPOL_DEVICE static RowsPlace of(const GpuArrays<T>& arrays, std::int64_t block) {
    const auto pieces = static_cast<std::uint32_t>(arrays.image_pieces), index = static_cast<std::uint32_t>(block);
    const std::uint32_t image = index / pieces;
    return {static_cast<std::int32_t>(image), static_cast<std::int32_t>(index - image * pieces) * Rows::rows};
  }
};

/// Blocks that a processor holds at least, so that a thread has 64 registers, 128 in float64 or where channels are joined: for
/// more the compiler would spill.
template <typename T, typename Rows>
constexpr int blocks_of_rows(bool joins) {
  constexpr int registers = 65536;
  return registers / (Rows::threads * (joins || sizeof(T) == sizeof(double) ? 128 : 64));
}

/// What lines are made of: rows of Hann(softplus(base)), which are written as the image, or of the image as it is.
enum class RowsOf { base, image };

/// The kept columns of the rows' transforms.
template <typename T, typename Rows, RowsOf what>
struct MapRowsBody {
  static constexpr int least_blocks = blocks_of_rows<T, Rows>(false);
  static constexpr int threads = Rows::threads, phases = 4, round_begin = 2, round_end = 3, lines = Rows::lines;
  struct Shared {};
  struct Local {};

  GpuArrays<T> arrays;

  MPOL_DEVICE std::int64_t blocks() const { return arrays.shape.images() * arrays.image_pieces; }
  MPOL_DEVICE std::int64_t rounds(std::int64_t) const { return arrays.kept.plan.passes; }
  std::int64_t scratch_bytes() const { return LineTransform<T>::bytes(arrays.kept.plan, lines); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const auto transform = arrays.kept.transform();
    const auto rows = RowsPlace::of<Rows>(arrays, place.block);
    const int pass = static_cast<int>(place.round);
    if constexpr (what == RowsOf::image) {
      if constexpr (phase == 1) load(place, rows, transform.first(place, lines));
    } else {
      if constexpr (phase == 0) smooth_columns(place, rows, transform.before(1, place, lines));
      if constexpr (phase == 1) smooth_rows(place, rows, transform.before(1, place, lines), transform.first(place, lines));
    }
    if constexpr (phase == 2) transform.run_pass(pass, pass, place, lines, lines, threads);
    if constexpr (phase == 3) store(place, rows, transform.last(place, lines));
  }

 private:
  MPOL_DEVICE void load(const Place& place, const RowsPlace& rows, const Lines<T>& to) const {
    const std::int32_t npix = arrays.shape.npix;
    const auto image = arrays.of_image(arrays.image, rows.image);
    for (int x = place.thread; x < npix; x += threads) {
      MPOL_UNROLL
      for (int line = 0; line < lines; ++line) {
        const std::int32_t row = rows.row + 2 * line;
        ComplexValue<T> value{T(0), T(0)};
        if (row < npix) value = {image[pixel_index(row, x, npix)], image[pixel_index(row + 1, x, npix)]};
        to.at(line, x) = value;
      }
    }
  }

  MPOL_DEVICE void smooth_columns(const Place& place, const RowsPlace& rows, const Lines<T>& smoothed) const {
    const std::int32_t npix = arrays.shape.npix;
    const auto base = arrays.of_image(arrays.base, rows.image);
    for (int x = place.thread; x < npix; x += threads) {
      T mapped[Rows::rows + 2];
      MPOL_UNROLL
      for (int y = 0; y < Rows::rows + 2; ++y) {
        const std::int32_t row = rows.row + y - 1;
        mapped[y] = row >= 0 && row < npix ? gpu_math::softplus(base[pixel_index(row, x, npix)]) : T(0);
      }
      MPOL_UNROLL
      for (int line = 0; line < lines; ++line) {
        const T *a = mapped + 2 * line, *b = a + 1;
        smoothed.at(line, x) = {T(0.5) * a[1] + T(0.25) * (a[0] + a[2]), T(0.5) * b[1] + T(0.25) * (b[0] + b[2])};
      }
    }
  }

  MPOL_DEVICE void smooth_rows(const Place& place, const RowsPlace& rows, const Lines<T>& from, const Lines<T>& to) const {
    const std::int32_t npix = arrays.shape.npix;
    const auto image = arrays.of_image(arrays.image, rows.image);
    for (int x = place.thread; x < npix; x += threads) {
      MPOL_UNROLL
      for (int line = 0; line < lines; ++line) {
        const auto sides = from.at_or_zero(line, x - 1, npix) + from.at_or_zero(line, x + 1, npix);
        const auto value = T(0.5) * from.at(line, x) + T(0.25) * sides;
        to.at(line, x) = value;
        const std::int32_t row = rows.row + 2 * line;
        if (row >= npix) continue;
        image[pixel_index(row, x, npix)] = value.real;
        image[pixel_index(row + 1, x, npix)] = value.imag;
      }
    }
  }

  MPOL_DEVICE void store(const Place& place, const RowsPlace& rows, const Lines<T>& transformed) const {
    const auto& kept = arrays.kept;
    const std::int32_t npix = arrays.shape.npix;
    const auto spectrum = arrays.spectrum.part(rows.image * std::int64_t{kept.count} * npix, std::int64_t{kept.count} * npix);
    for (int i = place.thread; i < kept.count * lines; i += threads) {
      const int number = i / lines, line = i % lines, column = kept.column[number];
      const std::int32_t row = rows.row + 2 * line;
      if (row >= npix) continue;
      const auto pair = RowPair<T>::of_line(transformed, line, column, npix);
      spectrum[number * npix + row] = pair.a;
      spectrum[number * npix + row + 1] = pair.b;
    }
  }
};

/// The kept columns, transformed, replaced by what PlaceTerms says of them, and transformed back.
template <typename T, typename Rows>
struct WeighColumnsBody {
  static constexpr int least_blocks = blocks_of_rows<T, Rows>(false);
  static constexpr int threads = Rows::threads, phases = 5, round_begin = 1, round_end = 2;
  using Sums = BlockSums<half_plane_sums, threads>;
  struct Shared {};
  struct Local {
    double sums[half_plane_sums];
  };

  GpuArrays<T> arrays;

  MPOL_DEVICE std::int64_t blocks() const { return arrays.shape.images() * arrays.plane_pieces; }
  /// Passes there, what is at the places, passes back.
  MPOL_DEVICE std::int64_t rounds(std::int64_t) const { return 2 * arrays.kept.plan.passes + 1; }
  std::int64_t scratch_bytes() const {
    const auto lines = LineTransform<T>::bytes(arrays.kept.plan, arrays.kept.of_block);
    return lines / 2 + std::max(lines / 2, static_cast<std::int64_t>(sizeof(Sums)));
  }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local& local) const {
    const auto& kept = arrays.kept;
    const auto transform = kept.transform();
    const auto columns = ColumnsPlace::of(arrays, place.block);
    Sums& sums = *place.scratch<Sums>(kept.of_block * kept.plan.distance() * static_cast<int>(sizeof(ComplexValue<T>)), 1).data;
    if constexpr (phase == 0) {
      for (double& sum : local.sums) sum = 0;
      load(place, columns, transform.first(place, kept.of_block));
    }
    if constexpr (phase == 1) {
      const int round = static_cast<int>(place.round), passes = kept.plan.passes, turn = round < passes ? round : round - 1;
      if (round == passes) weigh(place, columns, transform.last(place, kept.of_block), local.sums);
      else transform.run_pass(turn < passes ? turn : turn - passes, turn, place, columns.count, kept.of_block, threads);
    }
    if constexpr (phase == 2) {
      store(place, columns, transform.first(place, kept.of_block));
      sums.put(place.thread, local.sums);
    }
    if constexpr (phase == 3) sums.gather(place.thread);
    if constexpr (phase == 4) {
      for (int q = place.thread; q < half_plane_sums; q += threads)
        arrays.plane_sums[q * arrays.shape.images() * arrays.plane_pieces + place.block] = sums.total(q);
    }
  }

 private:
  /// The columns of an image that a block works on.
  struct ColumnsPlace {
    std::int32_t image, first, count;

    MPOL_DEVICE static ColumnsPlace of(const GpuArrays<T>& arrays, std::int64_t block) {
      const auto pieces = static_cast<std::uint32_t>(arrays.plane_pieces), index = static_cast<std::uint32_t>(block);
      const std::uint32_t image = index / pieces;
      const auto first = static_cast<std::int32_t>(index - image * pieces) * arrays.kept.of_block;
      const std::int32_t left = arrays.kept.count - first;
      return {static_cast<std::int32_t>(image), first, left < arrays.kept.of_block ? left : arrays.kept.of_block};
    }
    MPOL_DEVICE std::int64_t begin(const GpuArrays<T>& arrays, std::int64_t image_of) const {
      return (image_of * arrays.kept.count + first) * std::int64_t{arrays.shape.npix};
    }
  };

  /// Calls run(i, line, row) with each place of the columns that is this thread's.
  template <typename Run>
  MPOL_DEVICE void each_place(const Place& place, const ColumnsPlace& columns, const Run& run) const {
    const std::int32_t npix = arrays.shape.npix;
    for (int i = place.thread; i < columns.count * npix; i += threads) {
      const int line = arrays.kept.plan.length.quotient(i);
      run(i, line, i - line * npix);
    }
  }

  MPOL_DEVICE DeviceArray<ComplexValue<T>> spectrum(const ColumnsPlace& columns) const {
    return arrays.spectrum.part(columns.begin(arrays, columns.image), std::int64_t{columns.count} * arrays.shape.npix);
  }

  MPOL_DEVICE void load(const Place& place, const ColumnsPlace& columns, const Lines<T>& to) const {
    const auto from = spectrum(columns);
    each_place(place, columns, [&](int i, int line, int row) { to.at(line, row) = from[i]; });
  }

  MPOL_DEVICE void store(const Place& place, const ColumnsPlace& columns, const Lines<T>& from) const {
    const auto to = spectrum(columns);
    each_place(place, columns, [&](int i, int line, int row) { to[i] = from.at(line, row).swapped(); });
  }

  MPOL_DEVICE void weigh(const Place& place, const ColumnsPlace& columns, const Lines<T>& values,
                         double (&sums)[half_plane_sums]) const {
    const auto& kept = arrays.kept;
    const PlaceTerms<T> terms(arrays, columns.image / arrays.shape.nchan);
    const auto cells = arrays.cell_of.part(columns.begin(arrays, columns.image % arrays.cell_images),
                                           std::int64_t{columns.count} * arrays.shape.npix);
    each_place(place, columns, [&](int i, int line, int row) {
      const auto column = static_cast<std::uint32_t>(kept.column[columns.first + line]);
      auto& value = values.at(line, row);
      value =
          terms.slope(static_cast<std::uint32_t>(row) * arrays.shape.half() + column, column, cells[i], value, sums).swapped();
    });
  }
};

/// Lines of which rows of the gradient are made, from `first_row` on: columns that are not kept and rows beyond the image are 0.
template <int lines, int threads, typename T>
MPOL_DEVICE void load_kept(const GpuArrays<T>& arrays, std::int32_t image, std::int32_t first_row, const Place& place,
                           const Lines<T>& to) {
  const auto& kept = arrays.kept;
  const std::int32_t npix = arrays.shape.npix, half = static_cast<std::int32_t>(arrays.shape.half());
  const auto spectrum = arrays.spectrum.part(image * std::int64_t{kept.count} * npix, std::int64_t{kept.count} * npix);
  const auto at_row = [&](int number, std::int32_t row) -> ComplexValue<T> {
    if (number < 0 || row < 0 || row >= npix) return {T(0), T(0)};
    return spectrum[number * npix + row];
  };
  for (int i = place.thread; i < half * lines; i += threads) {
    const int column = i / lines, line = i % lines, number = kept.number[column];
    const std::int32_t row = first_row + 2 * line;
    RowPair<T>{at_row(number, row), at_row(number, row + 1)}.put(to, line, column, npix);
  }
}

/// The gradient of the likelihood, and of the regularizer of the half plane, from the kept columns.
template <typename T, typename Rows>
struct GradientRowsBody {
  static constexpr int least_blocks = blocks_of_rows<T, Rows>(false);
  static constexpr int threads = Rows::threads, phases = 3, round_begin = 1, round_end = 2, lines = Rows::lines;
  struct Shared {};
  struct Local {};

  GpuArrays<T> arrays;

  MPOL_DEVICE std::int64_t blocks() const { return arrays.shape.images() * arrays.image_pieces; }
  MPOL_DEVICE std::int64_t rounds(std::int64_t) const { return arrays.kept.plan.passes; }
  std::int64_t scratch_bytes() const { return LineTransform<T>::bytes(arrays.kept.plan, lines); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const auto transform = arrays.kept.transform();
    const auto rows = RowsPlace::of<Rows>(arrays, place.block);
    const int pass = static_cast<int>(place.round);
    if constexpr (phase == 0) load_kept<lines, threads>(arrays, rows.image, rows.row, place, transform.first(place, lines));
    if constexpr (phase == 1) transform.run_pass(pass, pass, place, lines, lines, threads);
    if constexpr (phase == 2) store(place, rows, transform.last(place, lines));
  }

 private:
  MPOL_DEVICE void store(const Place& place, const RowsPlace& rows, const Lines<T>& from) const {
    const std::int32_t npix = arrays.shape.npix;
    const auto gradient = arrays.of_image(arrays.likelihood, rows.image);
    for (int x = place.thread; x < npix; x += threads) {
      MPOL_UNROLL
      for (int line = 0; line < lines; ++line) {
        const std::int32_t row = rows.row + 2 * line;
        if (row >= npix) continue;
        const auto value = from.at(line, x);  // swapped
        gradient[pixel_index(row, x, npix)] = value.imag;
        gradient[pixel_index(row + 1, x, npix)] = value.real;
      }
    }
  }
};

/// Gradient of every term with respect to the image, whose part of the likelihood comes from the kept columns, Hann adjoint,
/// derivative of softplus and update. A block has a row more above and below, for the Hann adjoint.
/// @tparam Joining  as PixelTerms has them
template <typename T, typename Rows, typename Joining>
struct FinishRowsBody {
  static constexpr int least_blocks = blocks_of_rows<T, Rows>(Joining::count > 0);
  static constexpr int threads = Rows::threads, phases = 7, round_begin = 1, round_end = 2, lines = Rows::lines + 1;
  static constexpr int sum_count = Joining::count == 0 ? parameters_sum + 1 : finish_sums;
  using Sums = BlockSums<sum_count, threads>;
  struct Shared {};
  struct Local {
    double sums[sum_count];
  };

  GpuArrays<T> arrays;

  MPOL_DEVICE std::int64_t blocks() const { return arrays.shape.images() * arrays.image_pieces; }
  MPOL_DEVICE std::int64_t rounds(std::int64_t) const { return arrays.kept.plan.passes; }
  std::int64_t scratch_bytes() const {
    return std::max(LineTransform<T>::bytes(arrays.kept.plan, lines), static_cast<std::int64_t>(sizeof(Sums)));
  }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local& local) const {
    const auto transform = arrays.kept.transform();
    const auto rows = RowsPlace::of<Rows>(arrays, place.block);
    const int pass = static_cast<int>(place.round);
    const auto gradient = transform.last(place, lines);
    Sums& sums = *place.scratch<Sums>(0, 1).data;  // when the lines are done with
    if constexpr (phase == 0) load_kept<lines, threads>(arrays, rows.image, rows.row - 1, place, transform.first(place, lines));
    if constexpr (phase == 1) transform.run_pass(pass, pass, place, lines, lines, threads);
    if constexpr (phase == 2) find_gradient(place, rows, gradient, local);
    if constexpr (phase == 3) update_pixels(place, rows, gradient, local);
    if constexpr (phase == 4) sums.put(place.thread, local.sums);
    if constexpr (phase == 5) sums.gather(place.thread);
    if constexpr (phase == 6) {
      for (int q = place.thread; q < sum_count; q += threads) arrays.pixel_sums[q * piece_count() + place.block] = sums.total(q);
    }
  }

 private:
  /// Pixels of a row and their neighbors.
  struct Three {
    T left, own, right;
  };

  MPOL_DEVICE std::int64_t piece_count() const { return arrays.shape.images() * arrays.image_pieces; }
  /// One of two rows, whose inverse transform came out swapped.
  MPOL_DEVICE static T& of_row(ComplexValue<T>& value, int y) { return y % 2 == 0 ? value.imag : value.real; }

  MPOL_DEVICE Three pixels(const DeviceArray<T>& image, std::int32_t row, int x) const {
    const std::int32_t npix = arrays.shape.npix;
    if (row < 0 || row >= npix) return {T(0), T(0), T(0)};
    const std::uint32_t at = pixel_index(row, x, npix);
    return {x > 0 ? image[at - 1] : T(0), image[at], x + 1 < npix ? image[at + 1] : T(0)};
  }

  /// Derivatives of the regularizers of differences by the two forward differences of a pixel.
  struct Slopes {
    T along, across;
  };
  template <typename Add>
  MPOL_DEVICE static Slopes slopes(const PixelTerms<T, Joining>& terms, T dl, T dm, const Add& add) {
    const T factor = terms.difference_slope(dl * dl + dm * dm, add);
    return {dl * factor, dm * factor};
  }

  /// Goes down each column of pixels. A thread looks at its pixel and the one to the left, whose forward difference leads here.
  MPOL_DEVICE void find_gradient(const Place& place, const RowsPlace& rows, const Lines<T>& gradient, Local& local) const {
    for (double& sum : local.sums) sum = 0;
    const std::int32_t npix = arrays.shape.npix;
    const PixelTerms<T, Joining> terms(arrays, rows.image);
    const auto image = arrays.of_image(arrays.image, rows.image);
    const bool curves = arrays.template uses<regularizers::Driver::curvatures>();
    const auto add_nothing = [](auto, T) {};
    for (int x = place.thread; x < npix; x += threads) {
      T sums[sum_count] = {};
      Three own = pixels(image, rows.row - 1, x);
      T across_above = T(0);
      if (terms.has_differences() && rows.row >= 2 && x + 1 < npix) {
        const Three above = pixels(image, rows.row - 2, x);
        across_above = slopes(terms, above.right - above.own, own.own - above.own, add_nothing).across;
      }
      MPOL_UNROLL
      for (int y = 0; y < Rows::rows + 2; ++y) {
        const std::int32_t row = rows.row + y - 1;
        const Three below = pixels(image, row + 1, x);
        const bool counts = y > 0 && y <= Rows::rows;
        const auto add = [&](auto kind, T value) {
          if (counts) sums[image_sum_of(decltype(kind)::value)] += value;
        };
        T& slope = of_row(gradient.at(y / 2, x), y);
        if (row >= 0 && row < npix) {
          slope += terms.slope(row, x, own.own, add);
          if (curves) slope += arrays.likelihood[rows.image * std::int64_t{arrays.shape.pixels()} + pixel_index(row, x, npix)];
          if (terms.has_differences()) {
            Slopes here{T(0), T(0)}, left{T(0), T(0)};
            if (row + 1 < npix && x + 1 < npix) here = slopes(terms, own.right - own.own, below.own - own.own, add);
            if (row + 1 < npix && x > 0) left = slopes(terms, own.own - own.left, below.left - own.left, add_nothing);
            slope += (left.along - here.along) + (across_above - here.across);
            across_above = here.across;
          }
        } else {
          slope = T(0);
        }
        own = below;
      }
      MPOL_UNROLL
      for (int q = 0; q < sum_count; ++q) local.sums[q] += static_cast<double>(sums[q]);
    }
  }

  MPOL_DEVICE void update_pixels(const Place& place, const RowsPlace& rows, const Lines<T>& gradient, Local& local) const {
    const std::int32_t npix = arrays.shape.npix;
    const PixelUpdate<T> update(arrays, rows.image / arrays.shape.nchan);
    const std::int64_t begin = rows.image * std::int64_t{arrays.shape.pixels()};
    for (int x = place.thread; x < npix; x += threads) {
      T smoothed[Rows::rows + 2];
      MPOL_UNROLL
      for (int line = 0; line < lines; ++line) {
        const auto sides = gradient.at_or_zero(line, x - 1, npix) + gradient.at_or_zero(line, x + 1, npix);
        auto value = T(0.5) * gradient.at(line, x) + T(0.25) * sides;
        smoothed[2 * line] = of_row(value, 0);
        smoothed[2 * line + 1] = of_row(value, 1);
      }
      MPOL_UNROLL
      for (int y = 0; y < Rows::rows; ++y) {
        const std::int32_t row = rows.row + y;
        if (row >= npix) continue;
        const T slope = T(0.5) * smoothed[y + 1] + T(0.25) * (smoothed[y] + smoothed[y + 2]);
        local.sums[parameters_sum] += static_cast<double>(update(begin + pixel_index(row, x, npix), slope));
      }
    }
  }
};

}  // namespace mpol::ops
