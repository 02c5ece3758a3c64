#pragma once

// Products with Toeplitz matrices on a GPU in three kernels, in float64: rows of twice the length, whose second half is empty,
// columns times the kernel, and rows back. C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/gpu/line_transform.h>

namespace mpol::ops {

/// Images (images, npix, npix), the first of which is number `first` of all; image i has kernel i % nchan.
template <typename T>
struct ToeplitzArrays {
  std::int32_t npix, nchan, images;
  std::int64_t first;
  bool quadratic, add;  // what becomes of the product

  LinePlan plan;                                  // of lines of 2 npix points
  DeviceArray<const ComplexValue<double>> roots;  // (2 npix): exp(-2 pi i k / (2 npix))
  DeviceArray<ComplexValue<double>> spectrum;     // (images, npix + 1, npix): columns of the half plane, npix of 2 npix rows
  DeviceArray<const T> x;
  DeviceArray<const double> kernel;  // (nchan, npix + 1, 2 npix)
  DeviceArray<const double> linear;  // (nchan, npix, npix), of a quadratic form
  DeviceArray<T> result;             // the product, or the gradient of the quadratic form, written or added
  DeviceArray<double> sums;          // (all images, npix / 2): what its value is made of

  /// The lines of a block: one, of two rows or of a column.
  static constexpr int lines = 1;

  MPOL_DEVICE std::int32_t length() const { return 2 * npix; }
  MPOL_DEVICE std::int32_t pairs() const { return npix / 2; }
  MPOL_DEVICE std::int64_t pixels() const { return std::int64_t{npix} * npix; }
  MPOL_DEVICE std::int64_t channel_of(std::int64_t image) const { return (first + image) % nchan; }
  MPOL_DEVICE LineTransform<double> transform() const { return {plan, roots}; }
  std::int64_t scratch_bytes() const { return LineTransform<double>::bytes(plan, lines); }
  MPOL_DEVICE DeviceArray<ComplexValue<double>> spectrum_of(std::int64_t image) const {
    const std::int64_t size = std::int64_t{npix + 1} * npix;
    return spectrum.part(image * size, size);
  }
};

/// The two rows of an image that a block works on.
struct ToeplitzPair {
  std::int64_t image;
  std::int32_t row;  // the first

  template <typename T>
  MPOL_DEVICE static ToeplitzPair of(const ToeplitzArrays<T>& arrays, std::int64_t block) {
    const std::int64_t image = block / arrays.pairs();
    return {image, 2 * static_cast<std::int32_t>(block - image * arrays.pairs())};
  }
};

enum class ToeplitzKernel { rows, columns, back };

/// Transforms rows, two at once.
template <typename T>
struct ToeplitzRowsBody {
  static constexpr int threads = 256, phases = 3, round_begin = 1, round_end = 2, lines = ToeplitzArrays<T>::lines;
  struct Shared {};
  struct Local {};

  ToeplitzArrays<T> arrays;

  std::int64_t blocks() const { return std::int64_t{arrays.images} * arrays.pairs(); }
  MPOL_DEVICE std::int64_t rounds(std::int64_t) const { return arrays.plan.passes; }
  std::int64_t scratch_bytes() const { return arrays.scratch_bytes(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const auto transform = arrays.transform();
    const int pass = static_cast<int>(place.round), npix = arrays.npix;
    const auto [image, row] = ToeplitzPair::of(arrays, place.block);
    if constexpr (phase == 0) {
      const auto pixels = arrays.x.part(image * arrays.pixels() + std::int64_t{row} * npix, 2 * npix);
      const auto to = transform.first(place, lines);
      for (int i = place.thread; i < arrays.length(); i += threads) {
        ComplexValue<double> value{0, 0};
        if (i < npix) value = {static_cast<double>(pixels[i]), static_cast<double>(pixels[npix + i])};
        to.at(0, i) = value;
      }
    }
    if constexpr (phase == 1) transform.run_pass(pass, pass, place, lines, lines, threads);
    if constexpr (phase == 2) {
      const auto from = transform.last(place, lines);
      const auto to = arrays.spectrum_of(image);
      for (int column = place.thread; column <= npix; column += threads) {
        const auto pair = RowPair<double>::of_line(from, 0, column, arrays.length());
        to[std::int64_t{column} * npix + row] = pair.a;
        to[std::int64_t{column} * npix + row + 1] = pair.b;
      }
    }
  }
};

/// Transforms a column, multiplies it by the kernel and transforms it back.
template <typename T>
struct ToeplitzColumnsBody {
  static constexpr int threads = 256, phases = 3, round_begin = 1, round_end = 2, lines = ToeplitzArrays<T>::lines;
  struct Shared {};
  struct Local {};

  ToeplitzArrays<T> arrays;

  std::int64_t blocks() const { return std::int64_t{arrays.images} * (arrays.npix + 1); }
  /// Passes there, the kernel, passes back.
  MPOL_DEVICE std::int64_t rounds(std::int64_t) const { return 2 * arrays.plan.passes + 1; }
  std::int64_t scratch_bytes() const { return arrays.scratch_bytes(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const auto transform = arrays.transform();
    const int npix = arrays.npix, passes = arrays.plan.passes, round = static_cast<int>(place.round);
    const std::int64_t image = place.block / (npix + 1), column = place.block - image * (npix + 1);
    const auto spectrum = arrays.spectrum_of(image).part(column * npix, npix);
    if constexpr (phase == 0) {
      const auto to = transform.first(place, lines);
      for (int i = place.thread; i < arrays.length(); i += threads) {
        ComplexValue<double> value{0, 0};
        if (i < npix) value = spectrum[i];
        to.at(0, i) = value;
      }
    }
    if constexpr (phase == 1) {
      const int turn = round < passes ? round : round - 1;
      if (round == passes) {
        const auto kernel =
            arrays.kernel.part((arrays.channel_of(image) * (npix + 1) + column) * arrays.length(), arrays.length());
        const auto values = transform.last(place, lines);
        for (int i = place.thread; i < arrays.length(); i += threads) values.at(0, i) = kernel[i] * values.at(0, i).swapped();
      } else {
        transform.run_pass(turn < passes ? turn : turn - passes, turn, place, lines, lines, threads);
      }
    }
    if constexpr (phase == 2) {
      const auto from = transform.first(place, lines);
      for (int i = place.thread; i < npix; i += threads) spectrum[i] = from.at(0, i).swapped();
    }
  }
};

/// Transforms rows back: the product, or with it x^T (linear + T x) and its gradient linear + 2 T x.
template <typename T>
struct ToeplitzBackBody {
  static constexpr int threads = 256, phases = 5, round_begin = 1, round_end = 2, lines = ToeplitzArrays<T>::lines;
  struct Shared {
    BlockSums<1, threads> sums;
  };
  struct Local {};

  ToeplitzArrays<T> arrays;

  std::int64_t blocks() const { return std::int64_t{arrays.images} * arrays.pairs(); }
  MPOL_DEVICE std::int64_t rounds(std::int64_t) const { return arrays.plan.passes; }
  std::int64_t scratch_bytes() const { return arrays.scratch_bytes(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    const auto transform = arrays.transform();
    const int pass = static_cast<int>(place.round), npix = arrays.npix;
    const auto [image, row] = ToeplitzPair::of(arrays, place.block);
    if constexpr (phase == 0) {
      const auto from = arrays.spectrum_of(image);
      const auto to = transform.first(place, lines);
      for (int column = place.thread; column <= npix; column += threads) {
        const std::int64_t at = std::int64_t{column} * npix + row;
        RowPair<double>{from[at], from[at + 1]}.put(to, 0, column, arrays.length());
      }
    }
    if constexpr (phase == 1) transform.run_pass(pass, pass, place, lines, lines, threads);
    if constexpr (phase == 2) {
      const auto from = transform.last(place, lines);
      double sum = 0;
      for (int i = place.thread; i < npix; i += threads) {
        const auto product = from.at(0, i);  // swapped
        sum += finish(image, std::int64_t{row} * npix + i, product.imag);
        sum += finish(image, std::int64_t{row + 1} * npix + i, product.real);
      }
      shared.sums.put(place.thread, 0, sum);
    }
    if constexpr (phase == 3) shared.sums.gather(place.thread);
    if constexpr (phase == 4) {
      if (arrays.quadratic && place.thread == 0) arrays.sums[arrays.first * arrays.pairs() + place.block] = shared.sums.total(0);
    }
  }

 private:
  /// @param at  of the image
  /// @return    what the pixel adds to the value
  MPOL_DEVICE double finish(std::int64_t image, std::int64_t at, double product) const {
    const std::int64_t place = image * arrays.pixels() + at;
    if (!arrays.quadratic) {
      arrays.result[place] = static_cast<T>(product);
      return 0;
    }
    const double half_slope = arrays.linear[arrays.channel_of(image) * arrays.pixels() + at] + product;
    const T slope = static_cast<T>(half_slope + product);
    arrays.result[place] = arrays.add ? arrays.result[place] + slope : slope;
    return static_cast<double>(arrays.x[place]) * half_slope;
  }
};

/// Calls run(body) with the body of a kernel.
template <typename T, typename Run>
void with_body(ToeplitzKernel kernel, const ToeplitzArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case ToeplitzKernel::rows:
      return run(ToeplitzRowsBody<T>{arrays});
    case ToeplitzKernel::columns:
      return run(ToeplitzColumnsBody<T>{arrays});
    case ToeplitzKernel::back:
      return run(ToeplitzBackBody<T>{arrays});
  }
}

}  // namespace mpol::ops
