// Compiled once per instruction set: everything lies in a namespace of its name or in an unnamed one.
#include <mpol_cpp/ops/proximal/proximal_kernels.h>
#include <mpol_cpp/ops/simd/hann_row.h>
#include <mpol_cpp/ops/simd/second_differences.h>
#include <mpol_cpp/ops/simd/shuffle.h>
#include <mpol_cpp/ops/simd/wide.h>

namespace mpol::ops::MPOL_ISA {
namespace {

template <typename T>
MPOL_INLINE Vector<T> at_least_zero(Vector<T> x) {
  return at_least<T>(x, Vector<T>{});  // and 0 for what is no number
}

/// `values` in the lanes before the n-th element of a row, 0 from there on.
template <typename T>
MPOL_INLINE Vector<T> before_end(Vector<T> values, std::int64_t i, std::int64_t n) {
  return i + lanes<T> <= n ? values : (first_lanes<T>(n > i ? n - i : 0) ? values : Vector<T>{});
}

template <typename T>
MPOL_INLINE void add_product(Wide<T>& sum, Vector<T> a, Vector<T> b) {
  const auto x = widened<T>(a), y = widened<T>(b);
  for (int part = 0; part < Wide<T>::parts; ++part) sum.part[part] += x.part[part] * y.part[part];
}

template <typename T>
void look_ahead(const DualRow<T>& p, const DualRow<T>& before, T momentum, const T* below, const DualRow<T>& v, T* adjoint,
                std::int64_t n) {
  const auto factor = broadcast<T>(momentum);
  const auto ahead = [factor](const T* now, const T* then, std::int64_t i) __attribute__((always_inline)) {
    const auto value = load<T>(now + i);
    return value + factor * (value - load<T>(then + i));
  };
  const auto now = p, then = before, to = v;  // known not to be written in the loop
  Vector<T> columns_before{};
  for (std::int64_t i = 0; i < n; i += lanes<T>) {
    const auto rows = ahead(now.rows, then.rows, i), columns = ahead(now.columns, then.columns, i);
    store<T>(to.rows + i, rows);
    store<T>(to.columns + i, columns);
    store<T>(adjoint + i, load<T>(below + i) - rows + one_before<T>(columns_before, columns) - columns);
    columns_before = columns;
  }
}

/// Rows of our own, blended, from the place of a vector.
template <typename T>
MPOL_INLINE auto blended_rows(const RowAndNeighbors<T>& rows) {
  return [rows](std::int64_t i) __attribute__((always_inline)) {
    return hann_blend<T>(load<T>(rows.below + i), load<T>(rows.own + i), load<T>(rows.above + i));
  };
}

template <typename T>
void smooth(const RowAndNeighbors<T>& rows, const T* inside, T* out, std::int64_t n) {
  HannRow<T, decltype(blended_rows<T>(rows))> hann(blended_rows<T>(rows));
  for (std::int64_t i = 0; i < n; i += lanes<T>) store<T>(out + i, hann.at(i) * load<T>(inside + i));
}

/// Towards 0 by a threshold; what is no number stays so.
template <typename T>
MPOL_INLINE Vector<T> towards_zero(Vector<T> x, Vector<T> threshold) {
  return x - at_least<T>(-threshold, -at_least<T>(-threshold, -x));
}

template <typename T, typename SlopeAt>
MPOL_INLINE void shrink_by(const T* q, T weight, PixelCut<T> cut, const T* mask, const T* inside, T* x, std::int64_t n,
                           const SlopeAt& slope_at) {
  const auto each = [&](const auto& cut_value) __attribute__((always_inline)) {
    each_vector<T>(
        n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
          auto value = cut_value(load_first<T>(q + i, count) - weight * slope_at(i));
          if (mask != nullptr) value *= load_first<T>(mask + i, count);
          store<T>(x + i, value * load<T>(inside + i));
        });
  };
  if (cut.either_sign) {
    const auto threshold = broadcast<T>(cut.threshold);
    each([=](Vector<T> value) __attribute__((always_inline)) { return towards_zero<T>(value, threshold); });
  } else {
    each([](Vector<T> value) __attribute__((always_inline)) { return at_least_zero<T>(value); });
  }
}

template <typename T>
void shrink(const T* q, const RowAndNeighbors<T>& slopes, T weight, bool smooth_slope, PixelCut<T> cut, const T* mask,
            const T* inside, T* x, std::int64_t n) {
  if (smooth_slope) {
    HannRow<T, decltype(blended_rows<T>(slopes))> hann(blended_rows<T>(slopes));
    shrink_by<T>(
        q, weight, cut, mask, inside, x, n, [&](std::int64_t i) __attribute__((always_inline)) { return hann.at(i); });
  } else {
    shrink_by<T>(
        q, weight, cut, mask, inside, x,
        n, [&](std::int64_t i) __attribute__((always_inline)) { return load<T>(slopes.own + i); });
  }
}

template <typename T>
double ascend(const T* y, const T* next, T step, const DualRow<T>& v, const DualRow<T>& p, const T* counted,
              const DualRow<T>& raised, std::int64_t n) {
  const auto ahead = v, now = p, to = raised;  // known not to be written in the loop
  Vector<T> turned{};                          // of a row: few enough terms for T
  auto center = load<T>(y);
  for (std::int64_t i = 0; i < n; i += lanes<T>) {
    const auto beyond = load<T>(y + i + lanes<T>);
    const auto old_rows = load<T>(ahead.rows + i), old_columns = load<T>(ahead.columns + i);
    auto rows = old_rows + step * (load<T>(next + i) - center);
    auto columns = old_columns + step * (one_after<T>(center, beyond) - center);
    center = beyond;
    const auto square = rows * rows + columns * columns;
    const auto factor = reciprocal_square_root<T>(at_least<T>(broadcast<T>(1), square)) * load<T>(counted + i);
    rows *= factor;
    columns *= factor;
    turned += (old_rows - rows) * (rows - load<T>(now.rows + i)) + (old_columns - columns) * (columns - load<T>(now.columns + i));
    store<T>(to.rows + i, rows);
    store<T>(to.columns + i, columns);
  }
  return sum_of<T>(widened<T>(turned));
}

/// p + momentum (p - before), the term's factor being the momentum.
template <typename T>
MPOL_INLINE Vector<T> ahead_of(const DualTerm<T>& p, T momentum, std::int64_t i) {
  const auto now = load<T>(p.now + i);
  return now + broadcast<T>(momentum) * (now - load<T>(p.before + i));
}

template <typename T>
void gather(const DualTerm<T>* terms, int count, T momentum, T of_slope, T* slope, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes<T>) {
    auto sum = of_slope == T(0) ? Vector<T>{} : broadcast<T>(of_slope) * load<T>(slope + i);
    for (int term = 0; term < count; ++term) sum += broadcast<T>(terms[term].factor) * ahead_of<T>(terms[term], momentum, i);
    store<T>(slope + i, sum);
  }
}

/// (v - raised) (raised - p)
template <typename T>
MPOL_INLINE void add_turn(Wide<T>& turned, Vector<T> v, Vector<T> raised, Vector<T> p) {
  const auto part = widened<T>((v - raised) * (raised - p));
  for (int half = 0; half < Wide<T>::parts; ++half) turned.part[half] += part.part[half];
}

template <typename T>
double ascend_channels(const T* y, const T* next, T step, const DualTerm<T>& p, T* raised, std::int64_t n) {
  Wide<T> turned{};
  const auto one = broadcast<T>(1);
  for (std::int64_t i = 0; i < n; i += lanes<T>) {
    const auto v = ahead_of<T>(p, p.factor, i);
    auto value = v + step * (load<T>(next + i) - load<T>(y + i));
    value = value > one ? one : value;
    value = value < -one ? -one : value;
    add_turn<T>(turned, v, value, load<T>(p.now + i));
    store<T>(raised + i, value);
  }
  return sum_of<T>(turned);
}

template <typename T>
void ascend_spectra(const T* y, T step, const DualTerm<T>& p, T* raised, T* squares, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes<T>) {
    const auto value = ahead_of<T>(p, p.factor, i) + step * load<T>(y + i);
    store<T>(squares + i, load<T>(squares + i) + value * value);
    store<T>(raised + i, value);
  }
}

template <typename T>
double cut_spectra(const T* factor, const DualTerm<T>& p, T* raised, std::int64_t n) {
  Wide<T> turned{};
  for (std::int64_t i = 0; i < n; i += lanes<T>) {
    const auto value = load<T>(raised + i) * load<T>(factor + i);
    add_turn<T>(turned, ahead_of<T>(p, p.factor, i), value, load<T>(p.now + i));
    store<T>(raised + i, value);
  }
  return sum_of<T>(turned);
}

template <typename T>
void look_ahead_curvature(const CurvatureRow<T>& p, const CurvatureRow<T>& before, T momentum, const CurvatureRow<T>& v,
                          std::int64_t n) {
  const auto ahead = [&](const T* now, const T* then, T* out) __attribute__((always_inline)) {
    for (std::int64_t i = 0; i < n; i += lanes<T>) store<T>(out + i, ahead_of<T>({now, then, momentum}, momentum, i));
  };
  ahead(p.rows, before.rows, v.rows);
  ahead(p.columns, before.columns, v.columns);
  ahead(p.mixed, before.mixed, v.mixed);
}

template <typename T>
void add_curvature(const CurvatureRow<const T>& below, const CurvatureRow<const T>& v, const CurvatureRow<const T>& above,
                   T weight, T of_slope, T* slope, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes<T>) {
    const auto own = broadcast<T>(weight) * adjoint_second_differences<T>(below, v, above, i);
    store<T>(slope + i, of_slope == T(0) ? own : broadcast<T>(of_slope) * load<T>(slope + i) + own);
  }
}

template <typename T>
double ascend_curvature(const T* below, const T* y, const T* above, T step, const CurvatureRow<T>& v, const CurvatureRow<T>& p,
                        const T* counted, const CurvatureRow<T>& raised, std::int64_t n) {
  Vector<T> turned{};  // of a row: few enough terms for T
  const auto one = broadcast<T>(1);
  for (std::int64_t i = 0; i < n; i += lanes<T>) {
    const auto old_rows = load<T>(v.rows + i), old_columns = load<T>(v.columns + i), old_mixed = load<T>(v.mixed + i);
    const auto bends = second_differences<T>(below + i, y + i, above + i);
    auto rows = old_rows + step * bends.rows, columns = old_columns + step * bends.columns,
         mixed = old_mixed + step * bends.mixed;
    const auto square = rows * rows + columns * columns + mixed * mixed;
    const auto factor = reciprocal_square_root<T>(at_least<T>(one, square)) * load<T>(counted + i);
    rows *= factor;
    columns *= factor;
    mixed *= factor;
    turned += (old_rows - rows) * (rows - load<T>(p.rows + i)) + (old_columns - columns) * (columns - load<T>(p.columns + i)) +
              (old_mixed - mixed) * (mixed - load<T>(p.mixed + i));
    store<T>(raised.rows + i, rows);
    store<T>(raised.columns + i, columns);
    store<T>(raised.mixed + i, mixed);
  }
  return sum_of<T>(widened<T>(turned));
}

template <typename T>
double variation(const T* row, const T* next, double epsilon, std::int64_t n) {
  Wide<T> sum{};
  each_vector<T>(
      n - 1, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const auto center = load_first<T>(row + i, count);
        const auto along = load_first<T>(row + i + 1, count) - center, across = load_first<T>(next + i, count) - center;
        const auto length = fast_square_root<T>(along * along + across * across + static_cast<T>(epsilon));
        const auto counted = widened<T>(before_end<T>(length, i, n - 1));
        for (int part = 0; part < Wide<T>::parts; ++part) sum.part[part] += counted.part[part];
      });
  return sum_of<T>(sum);
}

template <typename T>
double curvature(const T* below, const T* row, const T* above, double epsilon, std::int64_t n) {
  Wide<T> sum{};
  each_vector<T>(
      n - 2, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const auto bends = second_differences<T>(below + 1 + i, row + 1 + i, above + 1 + i, count);
        const auto square = bends.rows * bends.rows + bends.columns * bends.columns + bends.mixed * bends.mixed;
        const auto counted = widened<T>(before_end<T>(fast_square_root<T>(square + static_cast<T>(epsilon)), i, n - 2));
        for (int part = 0; part < Wide<T>::parts; ++part) sum.part[part] += counted.part[part];
      });
  return sum_of<T>(sum);
}

template <typename T>
double sum(const T* row, std::int64_t n) {
  Wide<T> total{};
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const auto values = widened<T>(load_first<T>(row + i, count));
        for (int part = 0; part < Wide<T>::parts; ++part) total.part[part] += values.part[part];
      });
  return sum_of<T>(total);
}

template <typename T>
void scale(T* values, double factor, double shift, std::int64_t n) {
  const auto by = broadcast<T>(static_cast<T>(factor)), to = broadcast<T>(static_cast<T>(shift));
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count)
             __attribute__((always_inline)) { store_first<T>(values + i, by * load_first<T>(values + i, count) + to, count); });
}

template <typename T>
void extrapolate(const T* y, const T* gradient, const ExtrapolationFactors& factors, T* w, T* z, std::int64_t n) {
  const T slope = static_cast<T>(factors.slope), w_factor = static_cast<T>(factors.w_factor),
          y_factor = static_cast<T>(factors.y_factor), z_factor = static_cast<T>(factors.z_factor);
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const auto here = load_first<T>(y + i, count);
        const auto down = here - slope * load_first<T>(gradient + i, count);
        const auto ahead = down + w_factor * (down - load_first<T>(w + i, count)) + y_factor * (down - here) +
                           z_factor * (load_first<T>(z + i, count) - here);
        store_first<T>(w + i, down, count);
        store_first<T>(z + i, ahead, count);
      });
}

template <typename T>
PointSums compare(const T* y, const T* gradient, const T* next, const T* next_gradient, std::int64_t n) {
  Wide<T> along{}, bends{}, lengths{};
  each_vector<T>(
      n, [&](std::int64_t i, std::int64_t count) __attribute__((always_inline)) {
        const auto change = load_first<T>(next + i, count) - load_first<T>(y + i, count);
        const auto before = load_first<T>(gradient + i, count), after = load_first<T>(next_gradient + i, count);
        add_product<T>(along, change, after + before);
        add_product<T>(bends, change, after - before);
        add_product<T>(lengths, change, change);
      });
  return {sum_of<T>(along), sum_of<T>(bends), sum_of<T>(lengths)};
}

}  // namespace

template <typename T>
ProximalKernels<T> proximal_kernels() {
  return {look_ahead<T>,
          smooth<T>,
          shrink<T>,
          ascend<T>,
          look_ahead_curvature<T>,
          add_curvature<T>,
          ascend_curvature<T>,
          gather<T>,
          ascend_channels<T>,
          ascend_spectra<T>,
          cut_spectra<T>,
          variation<T>,
          curvature<T>,
          sum<T>,
          scale<T>,
          extrapolate<T>,
          compare<T>};
}

template ProximalKernels<float> proximal_kernels();
template ProximalKernels<double> proximal_kernels();

}  // namespace mpol::ops::MPOL_ISA
